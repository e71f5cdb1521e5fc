/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epochs: a plan opens one epoch per arm and draws its noise in advance; tokens fill its places; the token that fills
 * the last place closes it with a release, or with two brokers with a closing, which waits for the other half (two.h).
 * If the data of the arm are used up, the epoch is closed early (spent.h).
 */
#ifndef CV_BROKER_EPOCH_H
#define CV_BROKER_EPOCH_H

#include <stdint.h>

#include "common/base/err.h"

struct cv_broker;
struct cv_broker_campaign;
struct cv_broker_release;
struct cv_plan;

/* Opens the epochs of a plan that cv_broker_plan_check() accepted. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_epoch_open(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                      const struct cv_plan *plan);
/*
 * Adds a token's values to the epochs of the arms in `list`, in that order, and closes each epoch that the token
 * completes with a release. CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_epoch_add(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                     const uint32_t *list, uint32_t n, const int64_t *value);
/*
 * Closes the arm's open epoch with the tokens that it has: the arm's last release. Too few for a release: their sum is
 * deleted, the release is empty, and nothing is charged. There is no feedback graph. CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_epoch_close_early(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                             uint32_t arm);
/* Makes the campaign's next release. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_epoch_release(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                         const struct cv_broker_release *row);
/* The cost of the arm's next release, in micro-epsilon. */
uint64_t cv_epoch_price(const struct cv_broker_campaign *campaign, uint32_t arm);
/* Draws the noise of a new campaign's numbers of neutral tokens (gold.h), which is stored with the campaign. */
void cv_epoch_draw_neutral(struct cv_broker *broker, struct cv_broker_campaign *campaign);
/* Assigns round numbers to the epochs of the last plan. */
void cv_epoch_number_rounds(struct cv_broker_campaign *campaign);
/* Append a copy of an accepted plan or of a release to the campaign's history and hash chain. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_epoch_add_plan(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                          const struct cv_plan *plan);
CV_MUST_USE enum cv_err cv_epoch_add_release(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                             const struct cv_broker_release *row);

#endif
