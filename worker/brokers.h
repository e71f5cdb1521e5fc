/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to the core of the worker pool: what it does for campaigns with two brokers. Assignments are held while
 * there is no session with the co-broker; all functions take campaigns with one broker, too, for which nothing is held.
 */
#ifndef CV_WORKER_BROKERS_H
#define CV_WORKER_BROKERS_H

#include "worker/state.h"

/* For terms that are accepted otherwise: checks the brokers' keys, as far as they are known, and with two brokers makes
 * the campaign's session, or checks that the terms are the same as before. CV_ERR_DENIED with the reason to decline;
 * CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_worker_meet_brokers(struct cv_worker *pool, struct cv_worker_campaign *campaign,
                                               struct cv_why *why);

/* ---- slots ---- */

/* The broker may ask for this slot: there is one, and no token of it is settled. */
CV_MUST_USE enum cv_err cv_worker_check_slot(const struct cv_worker *pool, const struct cv_worker_campaign *campaign,
                                             const struct cv_assign *assign, struct cv_why *why);
/* The slot has been used, and counts no second time: its token has told nothing; or the worker has any such slot. */
bool cv_worker_slot_is_open(const struct cv_worker *pool, const struct cv_worker_campaign *campaign,
                            const struct cv_assign *assign);
bool cv_worker_has_open_slot(const struct cv_worker *pool, const struct cv_worker_campaign *campaign, uint64_t worker);
/* After the verdict on a token; `campaign` may be NULL. */
void cv_worker_settle_slot(const struct cv_worker *pool, const struct cv_worker_campaign *campaign,
                           const struct cv_pending *pending, enum cv_verdict verdict);

/* ---- assignments ---- */

/* Whether a token value has a measurement. */
bool cv_worker_can_split(const struct cv_worker_campaign *campaign, int64_t value);
/* Notes the assignment; true if it is held, without a score, until there is a session. */
bool cv_worker_hold(struct cv_worker *pool, const struct cv_worker_campaign *campaign, const struct cv_assign *assign,
                    struct cv_pending *pending);
/*
 * Makes the shares of a pending token. Not *ret_made: it is held until there is a session, or its value has no
 * measurement, and the campaign is declined. *ret_counts: the token counts against accept.tokens.
 */
CV_MUST_USE enum cv_err cv_worker_make_shares(struct cv_worker *pool, struct cv_worker_campaign *campaign,
                                              struct cv_pending *pending, bool *ret_made, bool *ret_counts);
/* Drops what is held of a campaign that takes no more tokens. */
CV_MUST_USE enum cv_err cv_worker_unhold(struct cv_worker *pool, uint64_t campaign);
/* The broker has gone, and takes back what has no score yet. */
void cv_worker_unhold_unscored(struct cv_worker *pool);
/* Declines what is held when three quarters of its lease are over. */
CV_MUST_USE enum cv_err cv_worker_unhold_late(struct cv_worker *pool, uint64_t now_ms);

#endif
