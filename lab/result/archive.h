/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of results: SQLite, made to be read by others too (docs/lab.md has the tables). It knows numbers and where
 * they come from, and nothing of experiments. What it says is checked, never trusted: a number of no replicate, a trial
 * of other length, text that is no list of numbers is CV_ERR_DAMAGED with one line.
 */
#ifndef CV_LAB_ARCHIVE_H
#define CV_LAB_ARCHIVE_H

#include "lab/result/origin.h"

/* A replicate's number is below this. */
#define CV_LAB_REPLICATES_MAX UINT64_C(1000000000)

struct cv_lab_archive;

/* For writing, made if it is not there; no other process can open it meanwhile. See cv_db_open for the errors. */
CV_MUST_USE enum cv_err cv_lab_archive_open(const char *path, struct cv_lab_archive **ret, struct cv_why *why);
CV_MUST_USE enum cv_err cv_lab_archive_open_readonly(const char *path, struct cv_lab_archive **ret, struct cv_why *why);
void cv_lab_archive_close(struct cv_lab_archive *archive);

/* A transaction, as in common/db/db.h. */
CV_MUST_USE enum cv_err cv_lab_archive_begin(struct cv_lab_archive *archive, struct cv_why *why);
CV_MUST_USE enum cv_err cv_lab_archive_commit(struct cv_lab_archive *archive, struct cv_why *why);
void cv_lab_archive_rollback(struct cv_lab_archive *archive);

/* Once, in a new file. */
CV_MUST_USE enum cv_err cv_lab_archive_put_origin(struct cv_lab_archive *archive, const struct cv_lab_origin *origin,
                                                  struct cv_why *why);
/* CV_ERR_NOT_FOUND, with a line, in a file that has just been made. */
CV_MUST_USE enum cv_err cv_lab_archive_origin(struct cv_lab_archive *archive, struct cv_lab_origin *ret,
                                              struct cv_why *why);

/* `numbers` are as many as the origin says, finite or NAN (CV_ERR_INVALID). CV_ERR_EXISTS if the trial is there. */
CV_MUST_USE enum cv_err cv_lab_archive_put(struct cv_lab_archive *archive, uint64_t setting, uint64_t replicate,
                                           const double *numbers, size_t n, struct cv_why *why);
/* Reads one trial into `numbers`, of `n`. */
CV_MUST_USE enum cv_err cv_lab_archive_get(struct cv_lab_archive *archive, uint64_t setting, uint64_t replicate,
                                           double *numbers, size_t n, bool *ret_found, struct cv_why *why);

/* The highest number of a replicate, and 1; 0 without a trial. */
CV_MUST_USE enum cv_err cv_lab_archive_replicates(struct cv_lab_archive *archive, uint64_t *ret, struct cv_why *why);

/* Hands in every trial, in the order of settings, then of replicates; the first error ends it. */
typedef enum cv_err cv_lab_trial_fn(void *data, uint64_t setting, uint64_t replicate, const double *numbers,
                                    struct cv_why *why);
CV_MUST_USE enum cv_err cv_lab_archive_each(struct cv_lab_archive *archive, const struct cv_lab_origin *origin,
                                            cv_lab_trial_fn *trial, void *data, struct cv_why *why);

#endif
