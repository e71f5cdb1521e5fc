/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/closing.h"

#include <string.h>

#include "cobroker/campaign.h"
#include "cobroker/conn.h"
#include "cobroker/ending.h"
#include "cobroker/state.h"
#include "cobroker/talk.h"
#include "common/base/array.h"
#include "common/base/fingerprint.h"
#include "common/prio/field.h"
#include "proto/codec/chain.h"

enum cv_err cv_cobroker_closing_add(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                    const struct cv_share_close *close, uint64_t half) {
  struct cv_cobroker_closing closing = {.hash = cv_cobroker_campaign_closing_hash(campaign, campaign->closings),
                                        .half = half};
  CV_TRY(CV_ARRAY_ROOM(campaign->closing, campaign->closings + 1, campaign->closings_cap));
  cv_chain_close(&closing.hash, close, core->config.digest);
  campaign->closing[campaign->closings++] = closing;
  campaign->closed += close->plan == campaign->plans;
  return CV_OK;
}

void cv_cobroker_closing_put(const struct cv_share_close *close, uint64_t half, struct cv_buf *out) {
  cv_buf_put_u64(out, close->plan);
  cv_buf_put(out, close->plan_hash.bytes, CV_DIGEST_BYTES);
  cv_buf_put_u32(out, close->arm);
  cv_buf_put_u64(out, close->count);
  cv_buf_put(out, close->chain.bytes, CV_DIGEST_BYTES);
  cv_buf_put_u8(out, close->discard);
  cv_buf_put_u64(out, half);
}

enum cv_err cv_cobroker_closing_read(const struct cv_cobroker_campaign *campaign, struct cv_reader *row,
                                     struct cv_share_close *ret, uint64_t *ret_half) {
  struct cv_share_close close = {.campaign = campaign->id, .number = campaign->closings + 1};
  close.plan = cv_read_u64(row);
  const uint8_t *plan_hash = cv_read(row, CV_DIGEST_BYTES);
  close.arm = cv_read_u32(row);
  close.count = cv_read_u64(row);
  const uint8_t *chain = cv_read(row, CV_DIGEST_BYTES);
  uint8_t discard = cv_read_u8(row);
  uint64_t half = cv_read_u64(row);
  if (!cv_reader_done(row) || discard > 1 || close.arm >= campaign->spec.arms || close.plan == 0 ||
      close.plan > campaign->plans || half >= CV_FIELD_P || (discard == 1 && half != 0)) {
    return CV_ERR_DAMAGED;
  }
  memcpy(close.plan_hash.bytes, plan_hash, CV_DIGEST_BYTES);
  memcpy(close.chain.bytes, chain, CV_DIGEST_BYTES);
  close.discard = discard == 1;
  *ret = close;
  *ret_half = half;
  return CV_OK;
}

static enum cv_err say(struct cv_cobroker *core, const struct cv_cobroker_campaign *campaign, uint64_t number) {
  core->said = true;
  return cv_cobroker_say_closed(
      &core->broker->gather,
      &(struct cv_share_closed){
          .campaign = campaign->id, .number = number, .half = campaign->closing[number - 1].half});
}

/* A closing that is known: the same again gets the same half. */
static enum cv_err repeat(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                          const struct cv_share_close *close) {
  struct cv_digest hash = cv_cobroker_campaign_closing_hash(campaign, close->number - 1);
  cv_chain_close(&hash, close, core->config.digest);
  if (!cv_digest_is_same(&hash, &campaign->closing[close->number - 1].hash)) {
    cv_cobroker_freeze(core, campaign, "the broker sends another closing %llu than before",
                       (unsigned long long)close->number);
    return CV_OK;
  }
  return say(core, campaign, close->number);
}

/* Whether the broker's epoch is the one that is open here, with the same tokens in it. Freezes the campaign if not: a
 * broker that closes what is not complete wants noise over too few tokens. */
static bool agrees(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                   const struct cv_share_close *close) {
  unsigned long long number = close->number;
  const struct cv_cobroker_arm *arm = close->arm < campaign->spec.arms ? &campaign->arm[close->arm] : NULL;
  if (arm == NULL || arm->plan == 0 || arm->plan != close->plan) {
    cv_cobroker_freeze(core, campaign, "closing %llu is of arm %llu in plan %llu, which is not open", number,
                       (unsigned long long)close->arm + 1, (unsigned long long)close->plan);
    return false;
  }
  struct cv_digest plan = cv_cobroker_campaign_plan_hash(campaign, close->plan);
  if (!cv_digest_is_same(&close->plan_hash, &plan)) {
    cv_cobroker_freeze(core, campaign, "closing %llu is of another plan %llu than here", number,
                       (unsigned long long)close->plan);
    return false;
  }
  if (close->discard) {
    return true;
  }
  if (close->count != arm->want || arm->filled != arm->want) {
    cv_cobroker_freeze(core, campaign, "closing %llu of arm %u has %llu tokens, here %u; expected %u", number,
                       close->arm + 1, (unsigned long long)close->count, arm->filled, arm->want);
    return false;
  }
  if (!cv_digest_is_same(&close->chain, &arm->chain)) {
    cv_cobroker_freeze(core, campaign, "closing %llu of arm %u is over other tokens than here", number, close->arm + 1);
    return false;
  }
  return true;
}

/* Ends the arm's epoch: with a half and its charge, or, when its data are used up, with nothing. */
static uint64_t end_epoch(struct cv_cobroker_campaign *campaign, const struct cv_share_close *close) {
  struct cv_cobroker_arm *arm = &campaign->arm[close->arm];
  uint64_t half = 0;
  if (close->discard) {
    cv_mechanism_free(arm->mechanism); /* with the noise */
    arm->mechanism = NULL;
  } else {
    /* The charge fitted when the plan was opened, and nothing else charges an open campaign. It is in the same batch
     * as the half, so neither is stored without the other. */
    uint64_t price = cv_cobroker_campaign_price(campaign, close->arm);
    CV_REQUIRE(cv_ledger_charge(&campaign->ledger, close->arm, price, NULL) == CV_OK);
    half = cv_mechanism_release_share(arm->mechanism, arm->sum);
  }
  arm->first += arm->filled;
  arm->plan = arm->sum = 0;
  arm->want = arm->filled = 0;
  arm->chain = (struct cv_digest){0};
  campaign->open_arms--;
  return half;
}

enum cv_err cv_cobroker_close(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                              const struct cv_share_close *close, struct cv_why *why) {
  if (close->number == 0 || close->number > campaign->closings + 1) {
    return cv_fail(why, CV_ERR_STATE, "campaign %u: closing %llu; expected at most %llu", campaign->id,
                   (unsigned long long)close->number, (unsigned long long)campaign->closings + 1);
  }
  if (close->number <= campaign->closings) {
    return repeat(core, campaign, close);
  }
  if (!agrees(core, campaign, close)) {
    return CV_OK;
  }
  uint64_t half = end_epoch(campaign, close);
  CV_TRY(cv_cobroker_closing_add(core, campaign, close, half));
  cv_cobroker_closing_put(close, half, &campaign->news_closings);
  cv_cobroker_dirty_arm(core, campaign, close->arm);
  cv_cobroker_campaign_mark(core, campaign);
  core->totals.releases++;
  core->figures.closings++;
  cv_cobroker_note(core, CV_LOG_DEBUG, NULL, campaign, ": closing %llu, of arm %u with %llu tokens%s",
                   (unsigned long long)close->number, close->arm + 1, (unsigned long long)close->count,
                   close->discard ? ", discarded" : "");
  return say(core, campaign, close->number);
}
