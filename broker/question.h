/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker is asked: the item of a place and, in a campaign of pairs, the opponent that it is compared with. Each
 * question is asked of a worker once (common/base/answered.h), unless the campaign says that it repeats them.
 */
#ifndef CV_BROKER_QUESTION_H
#define CV_BROKER_QUESTION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct cv_broker;
struct cv_broker_campaign;

/* The opponent of a place of an arm's open epoch, 1 + its number: the one that the plan names, or one that is always
 * drawn alike; 0 in a campaign without pairs. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_question_opponent(const struct cv_broker *broker,
                                                    const struct cv_broker_campaign *campaign, uint32_t arm,
                                                    uint32_t position, uint32_t *ret);
/* The number of the question about an arm, or a gold item (gold.h), and that opponent. */
uint64_t cv_broker_question_number(const struct cv_broker_campaign *campaign, uint32_t arm, uint32_t opponent);
/* The number of the question of a place: both of the above. */
CV_MUST_USE enum cv_err cv_broker_question_of_place(const struct cv_broker *broker,
                                                    const struct cv_broker_campaign *campaign, uint32_t arm,
                                                    uint32_t position, uint64_t *ret);

/* Begins the random bits by which the campaign's places are drawn, if they have not begun: a function of the broker's
 * key of tickets, so that neither workers nor the third-party foresee them. A restart begins anew. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_question_order(const struct cv_broker *broker, struct cv_broker_campaign *campaign);

/* Whether the worker may be asked: it has not answered the question, and is not being asked it. */
bool cv_broker_question_is_new(struct cv_broker_campaign *campaign, uint64_t worker, uint64_t question);
/* The worker is asked the question from now on, or is not any more. */
CV_MUST_USE enum cv_err cv_broker_question_begin(struct cv_broker_campaign *campaign, uint64_t worker,
                                                 uint64_t question);
void cv_broker_question_end(struct cv_broker_campaign *campaign, uint64_t worker, uint64_t question);

#endif
