/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to the core of the worker pool: campaigns that stand still here, since none of its workers may give them
 * another token. What the campaign itself takes of a worker the broker knows. What it cannot know, the pool tells it:
 * the workers' own limit (accept.tokens), or that they have answered all that campaigns of this name ask. Both follow
 * from how many questions were answered, never from the answers.
 */
#ifndef CV_WORKER_STALL_H
#define CV_WORKER_STALL_H

#include "worker/state.h"

/* Whether the worker can ever answer: not a person without an invitation, nor one without rows. */
bool cv_worker_is_there(const struct cv_worker *pool, uint64_t worker);
/* Whether the worker is there, and has given all that its own limit permits. */
bool cv_worker_is_barred(const struct cv_worker *pool, uint64_t worker);
/* Declines the campaign, with the reason, if it is live and that is why no worker of the pool can give it another
 * token. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_worker_stall_check(struct cv_worker *pool, struct cv_worker_campaign *campaign);
/* The same for all campaigns, if something has changed since the last call. */
CV_MUST_USE enum cv_err cv_worker_stall_check_all(struct cv_worker *pool, uint64_t now_ms);

#endif
