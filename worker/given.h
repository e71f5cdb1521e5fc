/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each worker of a range has given in all, in scores, in the file given.db of a state folder: a worker's own limit
 * outlives the process. A count is on disk before the token leaves that makes it so; what has left may have been seen.
 * And which rows of a data set have been given, by campaign: none is given a second time.
 */
#ifndef CV_WORKER_GIVEN_H
#define CV_WORKER_GIVEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct cv_given;

/* `state` is a folder that exists; counts of other ranges in the same file stay. Errors as of cv_db_open(). */
CV_MUST_USE enum cv_err cv_given_open(const char *state, uint64_t first, uint64_t last, struct cv_given **ret,
                                      struct cv_why *why);
void cv_given_close(struct cv_given *given);

/* By worker, from the first on; owned by `given`. */
const uint32_t *cv_given_scores(const struct cv_given *given);
/* A worker of the range comes to have given so many; the next cv_given_keep() stores it. */
void cv_given_note(struct cv_given *given, uint64_t worker, uint32_t scores);
/*
 * The rows that were given for a campaign of this name, each told once, in order. `print` is that of its data set
 * (persons.h): CV_ERR_INVALID if rows of another one were given. `told` may refuse one: CV_ERR_INVALID, too.
 */
CV_MUST_USE enum cv_err cv_given_rows(struct cv_given *given, const char *campaign, uint64_t print,
                                      bool (*told)(void *data, uint64_t row), void *data, struct cv_why *why);
/* Rows of that campaign come to have been given; the next cv_given_keep() stores them. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_given_note_rows(struct cv_given *given, const uint32_t *row, size_t rows);
/* All that was noted is on disk. Errors as of cv_db_commit(): nobody knows whether it is, and nothing may leave. */
CV_MUST_USE enum cv_err cv_given_keep(struct cv_given *given, struct cv_why *why);

#endif
