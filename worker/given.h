/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each worker of a range has given in all, in scores, in the file given.db of a state folder: a worker's own limit
 * outlives the process. A count is on disk before the token leaves that makes it so; what has left may have been seen.
 */
#ifndef CV_WORKER_GIVEN_H
#define CV_WORKER_GIVEN_H

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
/* All that was noted is on disk. Errors as of cv_db_commit(): nobody knows whether it is, and nothing may leave. */
CV_MUST_USE enum cv_err cv_given_keep(struct cv_given *given, struct cv_why *why);

#endif
