/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to the core of the worker pool: one question about one opinion. A broker that lies may ask again, under
 * another ticket, place or slot, or claim that the campaign repeats questions; the pool keeps a record of its own:
 *
 *   - where the terms do not say `repeat`, of all questions, unless it is hired;
 *   - of people and programs behind a privatizer always: each answer is randomized anew, so that two tokens about one
 *     opinion tell more than one. Since it is the broker that numbers campaigns, the record is one of all campaigns of
 *     a name.
 *
 * The answers of people and programs are stored, too.
 */
#ifndef CV_WORKER_AGAIN_H
#define CV_WORKER_AGAIN_H

#include "worker/state.h"

/* For terms that are accepted otherwise: makes the record, or checks that it fits them. CV_ERR_DENIED with the reason
 * to decline them; CV_ERR_NOMEM, or an error of the store. */
CV_MUST_USE enum cv_err cv_again_meet(const struct cv_worker *pool, struct cv_worker_campaign *campaign,
                                      struct cv_why *why);
/* With a stock: other rows of an item that a person has given a row of are for campaigns that repeat questions. After
 * each change of the live campaigns. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_again_bar(const struct cv_worker *pool);
/* Whether there is nothing left to ask the worker. */
bool cv_again_is_over(const struct cv_worker *pool, const struct cv_worker_campaign *campaign, uint64_t worker);
/* NULL if all that the assignment asks is new to its worker, else why it is declined. */
const char *cv_again_why_not(const struct cv_worker *pool, struct cv_worker_campaign *campaign,
                             const struct cv_assign *assign);
/* The questions of a pending assignment. */
void cv_again_put(const struct cv_assign *assign, struct cv_pending *pending);
/* Its token is made: records them. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_again_note(const struct cv_worker *pool, struct cv_worker_campaign *campaign,
                                      const struct cv_pending *pending);
/* Its token counts for nothing, and has told nothing: forgets them. */
void cv_again_forget(const struct cv_worker *pool, struct cv_worker_campaign *campaign,
                     const struct cv_pending *pending);

#endif
