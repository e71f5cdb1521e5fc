/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/plan.h"

#include <stdlib.h>
#include <string.h>

#include "cobroker/campaign.h"
#include "cobroker/conn.h"
#include "cobroker/ending.h"
#include "cobroker/image.h"
#include "cobroker/state.h"
#include "cobroker/talk.h"
#include "common/base/array.h"
#include "common/base/fingerprint.h"
#include "proto/codec/chain.h"

/* ---- checks ---- */

static uint64_t tokens_of(const struct cv_plan *plan) {
  uint64_t tokens = 0;
  for (uint32_t i = 0; i < plan->wants; i++) {
    tokens += plan->want[i].tokens;
  }
  return tokens;
}

/* Every arm is valid and named once, and so is every opponent. */
static enum cv_err check_names(const struct cv_cobroker_campaign *campaign, const struct cv_plan *plan,
                               struct cv_why *why) {
  uint8_t seen[CV_ARMS_MAX / 8] = {0};
  const struct cv_spec *spec = &campaign->spec;
  if (plan->wants == 0) {
    return cv_fail(why, CV_ERR_DENIED, "plan %llu is empty; expected at least one arm",
                   (unsigned long long)plan->number);
  }
  for (uint32_t i = 0; i < plan->wants; i++) {
    uint32_t arm = plan->want[i].arm;
    if (arm >= spec->arms) {
      return cv_fail(why, CV_ERR_DENIED, "arm %llu is unknown; expected 1 to %u", (unsigned long long)arm + 1,
                     spec->arms);
    }
    if (!cv_want_opponent_fits(&plan->want[i], spec->pairs, spec->arms)) {
      return cv_fail(why, CV_ERR_DENIED, "arm %u has opponent %u; expected %s", arm + 1, plan->want[i].opponent,
                     spec->pairs ? "another arm of the campaign" : "none: the campaign has no pairs");
    }
    if ((seen[arm / 8] >> (arm % 8) & 1) != 0) {
      return cv_fail(why, CV_ERR_DENIED, "arm %u is named twice; expected each arm once", arm + 1);
    }
    seen[arm / 8] |= (uint8_t)(1U << (arm % 8));
  }
  return CV_OK;
}

static enum cv_err check_sizes(const struct cv_plan *plan, uint32_t least, struct cv_why *why) {
  for (uint32_t i = 0; i < plan->wants; i++) {
    const struct cv_want *want = &plan->want[i];
    if (want->tokens < least || want->tokens > CV_PLAN_TOKENS_MAX) {
      return cv_fail(why, CV_ERR_DENIED, "%u tokens of arm %u in one release; expected %u to %d", want->tokens,
                     want->arm + 1, least, CV_PLAN_TOKENS_MAX);
    }
  }
  return CV_OK;
}

bool cv_cobroker_plan_fits(const struct cv_cobroker_campaign *campaign, const struct cv_plan *plan) {
  return check_names(campaign, plan, NULL) == CV_OK && check_sizes(plan, 1, NULL) == CV_OK;
}

/* Whether each arm takes part, and its account has room for its next release; else the amount asked for and left. */
static enum cv_err check_ledger(const struct cv_cobroker_campaign *campaign, const struct cv_plan *plan,
                                struct cv_share_refused *ret, struct cv_why *why) {
  for (uint32_t i = 0; i < plan->wants; i++) {
    uint32_t arm = plan->want[i].arm;
    if (cv_mechanism_is_spent(campaign->arm[arm].mechanism)) {
      return cv_fail(why, CV_ERR_DENIED, "arm %u has reached its horizon of %llu releases", arm + 1,
                     (unsigned long long)campaign->privacy.law.horizon);
    }
    uint64_t price = cv_cobroker_campaign_price(campaign, arm);
    /* Asked here, before the plan's noise is drawn, so that the charge at the end of the epoch cannot fail. */
    if (cv_ledger_ask(&campaign->ledger, arm, price, why) != CV_OK) {
      ret->asked = price;
      ret->left = cv_ledger_left(&campaign->ledger, arm);
      return CV_ERR_DENIED;
    }
  }
  return CV_OK;
}

/* No arm is used up, and no epoch of an earlier plan is open. */
static enum cv_err check_arms(const struct cv_cobroker_campaign *campaign, const struct cv_plan *plan,
                              struct cv_why *why) {
  if (campaign->open_arms > 0) {
    return cv_fail(why, CV_ERR_DENIED, "plan %llu before plan %llu is closed; expected one plan after the other",
                   (unsigned long long)plan->number, (unsigned long long)campaign->plans);
  }
  for (uint32_t i = 0; i < plan->wants; i++) {
    if (cv_cobroker_arm_is_spent(&campaign->arm[plan->want[i].arm])) {
      return cv_fail(why, CV_ERR_DENIED, "arm %u has no data left; expected only arms that have",
                     plan->want[i].arm + 1);
    }
  }
  return CV_OK;
}

static enum cv_err refuse(struct cv_share_refused *ret, enum cv_end reason) {
  ret->reason = reason;
  return CV_ERR_DENIED;
}

/* The order of the checks decides the reason that the campaign ends with; it is the broker's own. */
static enum cv_err check(const struct cv_cobroker_campaign *campaign, const struct cv_plan *plan,
                         struct cv_share_refused *ret, struct cv_why *why) {
  uint64_t asked = tokens_of(plan), left = campaign->spec.tokens - campaign->tokens;
  ret->asked = asked;
  ret->left = left;
  if (check_names(campaign, plan, why) != CV_OK || check_arms(campaign, plan, why) != CV_OK) {
    return refuse(ret, CV_END_REFUSED);
  }
  if (check_sizes(plan, campaign->privacy.least_tokens, why) != CV_OK) {
    return refuse(ret, asked > CV_PLAN_TOKENS_MAX && asked > left ? CV_END_TOKENS : CV_END_REFUSED);
  }
  if (check_ledger(campaign, plan, ret, why) != CV_OK) {
    return refuse(ret, CV_END_LEDGER);
  }
  if (asked > left) {
    (void)cv_fail(why, CV_ERR_DENIED, "the plan asks for %llu tokens; expected at most %llu, which are left of %llu",
                  (unsigned long long)asked, (unsigned long long)left, (unsigned long long)campaign->spec.tokens);
    return refuse(ret, CV_END_TOKENS);
  }
  /* The plan's places may begin and end inside a chunk; half of the chunks may still be those of the plan before. */
  if (asked / CV_CHUNK_BITS + 2 > campaign->places.most / 2) {
    (void)cv_fail(why, CV_ERR_DENIED, "the plan has %llu places at once; expected fewer", (unsigned long long)asked);
    return refuse(ret, CV_END_REFUSED);
  }
  return CV_OK;
}

/* ---- opening ---- */

enum cv_err cv_cobroker_plan_add(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                 const struct cv_plan *plan) {
  struct cv_digest hash = cv_cobroker_campaign_plan_hash(campaign, campaign->plans);
  struct cv_plan own;
  CV_TRY(CV_ARRAY_ROOM(campaign->plan_hash, campaign->plans + 1, campaign->plan_hash_cap));
  CV_TRY(cv_chain_plan(&hash, plan, core->config.digest));
  CV_TRY(cv_plan_copy(plan, &own));
  free(campaign->last.want);
  campaign->last = own;
  campaign->plan_hash[campaign->plans++] = hash;
  campaign->planned = campaign->rounds;
  campaign->rounds += tokens_of(plan);
  campaign->closed = 0;
  return CV_OK;
}

void cv_cobroker_plan_number(struct cv_cobroker_campaign *campaign) {
  uint64_t round = campaign->planned;
  for (uint32_t i = 0; i < campaign->last.wants; i++) {
    const struct cv_want *want = &campaign->last.want[i];
    campaign->arm[want->arm].round = round;
    round += want->tokens;
  }
}

static void put_row(const struct cv_plan *plan, struct cv_buf *out) {
  cv_buf_put_u64(out, plan->number);
  cv_buf_put_u32(out, 4 + plan->wants * CV_COBROKER_WANT_BYTES);
  cv_buf_put_u32(out, plan->wants);
  for (uint32_t i = 0; i < plan->wants; i++) {
    cv_buf_put_u32(out, plan->want[i].arm);
    cv_buf_put_u32(out, plan->want[i].tokens);
    cv_buf_put_u32(out, plan->want[i].opponent);
  }
}

/* Seeded noise is a function of (seed, arm, release), so that tests get the same noise after a restart; its stream is
 * the co-broker's own, since noise that both brokers draw alike would protect as one. */
static void draw(struct cv_cobroker *core, uint32_t index, struct cv_mechanism *mechanism) {
  if (!core->config.noise_seeded) {
    cv_mechanism_draw(mechanism, core->config.noise);
    return;
  }
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, core->config.noise_seed, CV_RNG_NOISE_COBROKER, index, mechanism->releases + 1);
  cv_mechanism_draw(mechanism, &seeded.rng);
}

static enum cv_err open_epochs(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                               const struct cv_plan *plan) {
  CV_TRY(cv_cobroker_plan_add(core, campaign, plan));
  cv_cobroker_plan_number(campaign);
  cv_cobroker_places_drop(core, campaign);
  for (uint32_t i = 0; i < plan->wants; i++) {
    struct cv_cobroker_arm *arm = &campaign->arm[plan->want[i].arm];
    arm->plan = plan->number;
    arm->want = plan->want[i].tokens;
    arm->filled = 0;
    arm->sum = 0;
    arm->chain = cv_cobroker_campaign_plan_hash(campaign, campaign->plans);
    /* The noise is drawn here, before any token of the epoch is known (mechanism.h), and stored with the plan. */
    draw(core, plan->want[i].arm, arm->mechanism);
    cv_cobroker_dirty_arm(core, campaign, plan->want[i].arm);
    campaign->open_arms++;
  }
  put_row(plan, &campaign->news_plans);
  core->figures.plans++;
  cv_cobroker_campaign_mark(core, campaign);
  return CV_OK;
}

/* A plan that is known: the same again, or another one. */
static enum cv_err repeat(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, const struct cv_plan *plan) {
  struct cv_digest hash = cv_cobroker_campaign_plan_hash(campaign, plan->number - 1);
  CV_TRY(cv_chain_plan(&hash, plan, core->config.digest));
  struct cv_digest ours = cv_cobroker_campaign_plan_hash(campaign, plan->number);
  if (!cv_digest_is_same(&hash, &ours)) {
    cv_cobroker_freeze(core, campaign, "the broker sends another plan %llu than before",
                       (unsigned long long)plan->number);
    return CV_OK;
  }
  return cv_cobroker_say_plan_opened(&core->broker->gather, campaign->id, plan->number);
}

enum cv_err cv_cobroker_plan(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                             const struct cv_plan *plan, struct cv_why *why) {
  struct cv_share_refused refused = {.campaign = campaign->id, .plan = plan->number};
  struct cv_why reason;
  core->said = true;
  if (plan->number == 0 || plan->number > campaign->plans + 1) {
    return cv_fail(why, CV_ERR_STATE, "campaign %u: plan %llu; expected at most %llu", campaign->id,
                   (unsigned long long)plan->number, (unsigned long long)campaign->plans + 1);
  }
  if (plan->number <= campaign->plans) {
    return repeat(core, campaign, plan);
  }
  if (check(campaign, plan, &refused, &reason) != CV_OK) {
    refused.why = reason.text;
    cv_refusals_add(&core->figures.refusals, CV_REFUSED_PLAN);
    cv_cobroker_note(core, CV_LOG_INFO, core->broker->who, campaign, ": plan %llu refused: %s",
                     (unsigned long long)plan->number, reason.text);
    return cv_cobroker_say_plan_refused(&core->broker->gather, &refused);
  }
  CV_TRY(open_epochs(core, campaign, plan));
  return cv_cobroker_say_plan_opened(&core->broker->gather, campaign->id, plan->number);
}
