/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the core of the worker pool: questions whose answers come later (struct cv_asker in core.h). */
#ifndef CV_WORKER_ASKER_H
#define CV_WORKER_ASKER_H

#include "worker/state.h"

/* Asks the questions of an assignment, for which `pending` was made; its values come with the answers, until due_ms. */
void cv_asker_begin(struct cv_worker *pool, struct cv_worker_campaign *campaign, const struct cv_assign *assign,
                    struct cv_pending *pending);
/* True if an answer is missing: there is no token yet. */
bool cv_asker_is_open(const struct cv_pending *pending);
/* The campaign takes no more tokens: withdraws its open questions. */
CV_MUST_USE enum cv_err cv_asker_end(struct cv_worker *pool, uint64_t campaign);
/* Withdraws the questions whose lease is over. */
CV_MUST_USE enum cv_err cv_asker_expire(struct cv_worker *pool, uint64_t now_ms);
/* Says what the broker did with the token of a pending assignment; before the entry is removed. */
void cv_asker_tell(struct cv_worker *pool, const struct cv_pending *pending, enum cv_verdict verdict);

#endif
