/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scores that each worker of a range has given over all runs, in the file given.db of the state folder, so that a
 * worker's limit survives restarts. The shell commits a count before the token leaves, since the broker may have seen
 * any token that left. The store also has the rows of a data set that were given, by campaign, so that no row is given
 * twice.
 */
#ifndef CV_WORKER_STORE_H
#define CV_WORKER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/db/db.h"

struct cv_worker_store;

/* `state` is an existing folder; counts of other ranges in the same file stay. Errors as for cv_db_open(). */
CV_MUST_USE enum cv_err cv_worker_store_open(const char *state, uint64_t first, uint64_t last,
                                             struct cv_worker_store **ret, struct cv_why *why);
void cv_worker_store_close(struct cv_worker_store *store);
/* Checks a copy of a database as cv_backup_check_fn says (common/daemon/backup_command.h); *ret_commit is 0. */
CV_MUST_USE enum cv_err cv_worker_check_copy(const void *settings, const char *path, uint64_t *ret_commit,
                                             struct cv_why *why);
/* The open database, for a copy of it. */
struct cv_db *cv_worker_store_database(const struct cv_worker_store *store);

/* The scores given per worker, from `first` on; owned by `store`. */
const uint32_t *cv_worker_store_scores(const struct cv_worker_store *store);
/* Sets the total of a worker of the range; the next cv_worker_store_commit() stores it. */
void cv_worker_store_note(struct cv_worker_store *store, uint64_t worker, uint32_t scores);
/*
 * Calls told() once for each stored row of the campaign, in order. `print` is the fingerprint of its data set
 * (persons.h). CV_ERR_INVALID if the stored rows belong to another data set, or if told() returns false.
 */
CV_MUST_USE enum cv_err cv_worker_store_rows(struct cv_worker_store *store, const char *campaign, uint64_t print,
                                             bool (*told)(void *data, uint64_t row), void *data, struct cv_why *why);
/* Adds given rows of the campaign above; the next cv_worker_store_commit() stores them. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_worker_store_note_rows(struct cv_worker_store *store, const uint32_t *row, size_t rows);
/* Writes all noted counts and rows to disk. Errors as for cv_db_commit(): the outcome is unknown, so no token may
 * leave. */
CV_MUST_USE enum cv_err cv_worker_store_commit(struct cv_worker_store *store, struct cv_why *why);

#endif
