/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of tokens: each token is judged once, and the answers are kept until the broker has booked them.
 *
 * A token counts if the seal of its session opens under the campaign, plan, arm, place, worker, slot and nonce that the
 * broker names, if both its place and its slot are free, if its worker has epsilon left, and if both verifier shares
 * together accept it.
 */
#ifndef CV_COBROKER_VERDICT_H
#define CV_COBROKER_VERDICT_H

#include "common/base/err.h"
#include "proto/codec/share.h"

struct cv_cobroker;
struct cv_cobroker_answers;
struct cv_cobroker_campaign;

/* The most tokens of batches that the broker has not said to have booked: four times as many as it lets wait. */
enum { CV_COBROKER_UNDONE_TOKENS = 4 * 65536 };

/* Handle a Batch and a Done of an open campaign, which they may freeze. An error means that the broker broke the
 * protocol; CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_batch(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                          const struct cv_share_batch *batch, struct cv_why *why);
CV_MUST_USE enum cv_err cv_cobroker_done(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                         uint64_t number, struct cv_why *why);
/* Keeps the answers to the next batch; takes `answer`, also after an error. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_answers_keep(struct cv_cobroker_campaign *campaign,
                                                 const struct cv_cobroker_answers *answers);
/* The kept answers to batch done < n <= batches. */
const struct cv_cobroker_answers *cv_cobroker_answers_of(const struct cv_cobroker_campaign *campaign, uint64_t n);

#endif
