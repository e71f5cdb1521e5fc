/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/question.h"

#include <string.h>

#include "broker/campaign.h"
#include "broker/opponent.h"
#include "broker/state.h"

enum cv_err cv_broker_question_opponent(const struct cv_broker *broker, const struct cv_broker_campaign *campaign,
                                        uint32_t arm, uint32_t position, uint32_t *ret) {
  const struct cv_opponent_place place = {
      .campaign = campaign->id, .plan = campaign->arm[arm].plan, .arm = arm, .position = position};
  *ret = campaign->arm[arm].opponent;
  if (!campaign->spec.pairs || *ret > 0) {
    return CV_OK;
  }
  uint32_t drawn;
  CV_TRY(cv_opponent_draw(&broker->config.tagger, &place, campaign->spec.arms, &drawn));
  *ret = drawn + 1; /* without gold items, items are arms */
  return CV_OK;
}

uint64_t cv_broker_question_number(const struct cv_broker_campaign *campaign, uint32_t arm, uint32_t opponent) {
  return cv_answered_question(cv_broker_gold_item_of(&campaign->gold, arm), opponent);
}

enum cv_err cv_broker_question_of_place(const struct cv_broker *broker, const struct cv_broker_campaign *campaign,
                                        uint32_t arm, uint32_t position, uint64_t *ret) {
  uint32_t opponent = 0;
  if (campaign->answered.questions > 0) {
    CV_TRY(cv_broker_question_opponent(broker, campaign, arm, position, &opponent));
  }
  *ret = cv_broker_question_number(campaign, arm, opponent);
  return CV_OK;
}

enum cv_err cv_broker_question_order(const struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  /* Authenticated text of another length than a ticket's body, so that neither is ever taken for the other. */
  static const char use[] = "crowdveil order of places";
  enum { KEY = 8 };
  if (campaign->order.rng.refill != NULL) {
    return CV_OK;
  }
  /* At least as many as before a restart, but for those that were not answered. */
  campaign->gold.asked = campaign->tokens + cv_broker_gold_answers(&campaign->gold);
  uint8_t key[KEY], bound[sizeof(campaign->id)];
  const struct cv_tagger *tagger = &broker->config.tagger;
  CV_TRY(tagger->tag(tagger->data, use, sizeof(use), key, sizeof(key)));
  for (size_t i = 0; i < sizeof(bound); i++) {
    bound[i] = (uint8_t)(campaign->id >> (8 * i));
  }
  cv_xof_init(&campaign->order.xof, key, sizeof(key), (const uint8_t *)use, sizeof(use), NULL, 0, bound, sizeof(bound));
  cv_xof_rng_init(&campaign->order);
  explicit_bzero(key, sizeof(key));
  return CV_OK;
}

/* Two have the same bit only where worker * questions exceeds 2^64, and then one of them waits for the other. */
static uint64_t bit_of(const struct cv_broker_campaign *campaign, uint64_t worker, uint64_t question) {
  return worker * campaign->answered.questions + question;
}

bool cv_broker_question_is_new(struct cv_broker_campaign *campaign, uint64_t worker, uint64_t question) {
  return campaign->answered.questions == 0 || (!cv_offers_has(&campaign->asking, bit_of(campaign, worker, question)) &&
                                               !cv_answered_has(&campaign->answered, worker, question));
}

enum cv_err cv_broker_question_begin(struct cv_broker_campaign *campaign, uint64_t worker, uint64_t question) {
  return campaign->answered.questions == 0 ? CV_OK
                                           : cv_offers_set(&campaign->asking, bit_of(campaign, worker, question));
}

void cv_broker_question_end(struct cv_broker_campaign *campaign, uint64_t worker, uint64_t question) {
  if (campaign->answered.questions > 0) {
    cv_offers_clear(&campaign->asking, bit_of(campaign, worker, question));
  }
}
