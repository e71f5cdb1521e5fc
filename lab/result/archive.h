/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of results: an SQLite database that other programs can read, too (docs/lab.md has the tables). It has values
 * and their origin, and does not depend on experiments. All that is read is checked: an invalid replicate, a trial of
 * wrong length or a text that is not a list of numbers is CV_ERR_DAMAGED with one line.
 */
#ifndef CV_LAB_ARCHIVE_H
#define CV_LAB_ARCHIVE_H

#include "lab/result/origin.h"

/* Upper limit of a replicate's number, exclusive. */
#define CV_LAB_REPLICATES_MAX UINT64_C(1000000000)

struct cv_lab_archive;

/* Opens a file for writing, and makes it if it is missing; no other process can open it meanwhile. Errors as in
 * cv_db_open(). */
CV_MUST_USE enum cv_err cv_lab_archive_open(const char *path, struct cv_lab_archive **ret, struct cv_why *why);
CV_MUST_USE enum cv_err cv_lab_archive_open_readonly(const char *path, struct cv_lab_archive **ret, struct cv_why *why);
void cv_lab_archive_close(struct cv_lab_archive *archive);

/* Transactions, as in common/db/db.h. */
CV_MUST_USE enum cv_err cv_lab_archive_begin(struct cv_lab_archive *archive, struct cv_why *why);
CV_MUST_USE enum cv_err cv_lab_archive_commit(struct cv_lab_archive *archive, struct cv_why *why);
void cv_lab_archive_rollback(struct cv_lab_archive *archive);

/* Stores the origin; once, in a new file. */
CV_MUST_USE enum cv_err cv_lab_archive_put_origin(struct cv_lab_archive *archive, const struct cv_lab_origin *origin,
                                                  struct cv_why *why);
/* Reads the origin; the caller frees it. CV_ERR_NOT_FOUND with one line in a new file. */
CV_MUST_USE enum cv_err cv_lab_archive_origin(struct cv_lab_archive *archive, struct cv_lab_origin *ret,
                                              struct cv_why *why);

/* Stores one trial: n = cv_lab_origin_numbers() values, finite or NAN (else CV_ERR_INVALID). CV_ERR_EXISTS if the file
 * has the trial. */
CV_MUST_USE enum cv_err cv_lab_archive_put(struct cv_lab_archive *archive, uint64_t setting, uint64_t replicate,
                                           const double *numbers, size_t n, struct cv_why *why);
/* Reads one trial into `numbers`, `n` values; sets *ret_found to false if the file does not have it. */
CV_MUST_USE enum cv_err cv_lab_archive_get(struct cv_lab_archive *archive, uint64_t setting, uint64_t replicate,
                                           double *numbers, size_t n, bool *ret_found, struct cv_why *why);

/* Sets *ret to the highest replicate number plus 1, 0 without trials. */
CV_MUST_USE enum cv_err cv_lab_archive_replicates(struct cv_lab_archive *archive, uint64_t *ret, struct cv_why *why);

/* Calls `trial` for every trial, in the order of settings, then replicates; the first error ends it. */
typedef enum cv_err cv_lab_trial_fn(void *data, uint64_t setting, uint64_t replicate, const double *numbers,
                                    struct cv_why *why);
CV_MUST_USE enum cv_err cv_lab_archive_each(struct cv_lab_archive *archive, const struct cv_lab_origin *origin,
                                            cv_lab_trial_fn *trial, void *data, struct cv_why *why);

#endif
