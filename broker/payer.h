/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a token to its worker, and whether the worker can give it. */
#ifndef CV_BROKER_PAYER_H
#define CV_BROKER_PAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/net/identity.h"

struct cv_broker;
struct cv_broker_campaign;

/* The bit of a worker's slot among the payers: worker * tokens_per_worker + slot. */
uint64_t cv_broker_campaign_payer_bit(const struct cv_broker_campaign *campaign, uint64_t worker, uint32_t slot);
/* The cost to its worker of a token that covers `shown` arms, in micro-epsilon. */
uint64_t cv_broker_campaign_charge(const struct cv_broker_campaign *campaign, uint32_t shown);
/* Whether the worker's lifetime epsilon has room for that cost; later: if the tokens of it that wait for a co-broker do
 * not all count. If exact sums leave the broker, a worker's first token takes all that is left, and its further tokens
 * cost nothing. */
enum cv_pays { CV_PAYS, CV_PAYS_LATER, CV_PAYS_NEVER };
enum cv_pays cv_broker_campaign_can_pay(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint64_t worker,
                                        uint32_t shown);
#define CV_LIFETIME_SPENT "this worker's lifetime epsilon is spent"
/* Whether the certificate may add the table chunks that a token of this worker with this slot needs, for an answer to
 * this question. */
bool cv_broker_campaign_has_room(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                 const struct cv_identity *identity, uint64_t worker, uint32_t slot, uint64_t question);

#endif
