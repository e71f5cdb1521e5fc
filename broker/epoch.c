/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An epoch that is not closed early has exactly `want` tokens; with a feedback graph exactly as many as the plan's
 * plays show of the arm (shown.c).
 */
#include "broker/epoch.h"

#include <stdlib.h>
#include <string.h>

#include "broker/campaign.h"
#include "broker/dirty.h"
#include "broker/places.h"
#include "broker/shown.h"
#include "broker/state.h"
#include "broker/talk.h"
#include "broker/two.h"
#include "common/base/array.h"
#include "proto/codec/chain.h"

static const uint32_t NOBODY = UINT32_MAX;

uint64_t cv_epoch_price(const struct cv_broker_campaign *campaign, uint32_t arm) {
  /* The mechanism's total after n + 1 releases minus that after n, so that rounding never adds up. */
  uint64_t releases = campaign->arm[arm].mechanism->releases;
  uint64_t before = cv_broker_campaign_cost(campaign, releases);
  uint64_t after = cv_broker_campaign_cost(campaign, releases + 1);
  return after > before ? after - before : 0;
}

static uint64_t tokens_of(const struct cv_plan *plan) {
  uint64_t tokens = 0;
  for (uint32_t i = 0; i < plan->wants; i++) {
    tokens += plan->want[i].tokens;
  }
  return tokens;
}

/* The last play of some plans: its arm, NOBODY if there is none; how many plays before it another arm was planned, 0 if
 * in none of CV_MEMORY_MAX plays. */
struct last {
  uint32_t arm;
  uint64_t switched;
};

/* Looks back through the first `plans` plans. */
static struct last last_of(const struct cv_broker_campaign *campaign, size_t plans) {
  struct last last = {.arm = NOBODY};
  uint64_t run = 0;
  while (plans-- > 0 && run <= CV_MEMORY_MAX) {
    const struct cv_plan *plan = &campaign->plan[plans];
    for (uint32_t i = plan->wants; i-- > 0;) {
      const struct cv_want *want = &plan->want[i];
      last.arm = last.arm == NOBODY && want->tokens > 0 ? want->arm : last.arm;
      if (want->tokens > 0 && want->arm != last.arm) {
        last.switched = run <= CV_MEMORY_MAX ? run : 0;
        return last;
      }
      run += want->tokens;
    }
  }
  return last;
}

void cv_epoch_number_rounds(struct cv_broker_campaign *campaign) {
  if (campaign->plans == 0) {
    return;
  }
  /* Plays are numbered across arms in the order of the plan; the play before an arm's first may be of the previous
   * plan. */
  const struct cv_plan *plan = &campaign->plan[campaign->plans - 1];
  uint64_t round = campaign->planned;
  struct last last = last_of(campaign, campaign->plans - 1);
  for (uint32_t i = 0; i < plan->wants; i++) {
    struct cv_want want = plan->want[i];
    struct cv_arm *arm = &campaign->arm[want.arm];
    bool is_other = last.arm != NOBODY && last.arm != want.arm;
    uint64_t switched = is_other ? 1 : last.switched == 0 ? 0 : last.switched + 1;
    arm->opponent = want.opponent;
    arm->round = round;
    arm->switched = switched > CV_MEMORY_MAX ? 0 : (uint32_t)switched;
    round += want.tokens;
    if (want.tokens > 0) {
      last = (struct last){want.arm, switched == 0 ? 0 : switched + want.tokens - 1};
    }
  }
}

enum cv_err cv_epoch_add_plan(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                              const struct cv_plan *plan) {
  CV_TRY(CV_ARRAY_ROOM(campaign->plan, campaign->plans + 1, campaign->plans_cap));
  struct cv_want *want = calloc(plan->wants, sizeof(*want));
  if (want == NULL) {
    return CV_ERR_NOMEM;
  }
  memcpy(want, plan->want, plan->wants * sizeof(*want));
  /* `planned` excludes the last plan, whose tokens are still being assigned. */
  campaign->planned = campaign->rounds;
  campaign->rounds += tokens_of(plan);
  campaign->plan[campaign->plans++] = (struct cv_plan){.number = plan->number, .wants = plan->wants, .want = want};
  /* Both sides compute this chain; on each connection they compare it before anything else is sent (thirdparty.c). */
  return cv_chain_plan(&campaign->plans_hash, plan, broker->config.digest);
}

enum cv_err cv_epoch_add_release(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                 const struct cv_broker_release *row) {
  CV_TRY(CV_ARRAY_ROOM(campaign->release, campaign->releases + 1, campaign->releases_cap));
  campaign->release[campaign->releases++] = *row;
  if (row->wanted > 0) {
    struct cv_used_up *used_up = &campaign->used_up[campaign->spent_arms % CV_USED_UP_SHOWN];
    if (campaign->spent_arms < CV_USED_UP_SHOWN) {
      *used_up = (struct cv_used_up){.arm = row->arm, .tokens = row->given, .wanted = row->wanted};
    }
    campaign->spent_arms++;
  }
  struct cv_release release;
  cv_broker_campaign_release(campaign, campaign->releases - 1, &release);
  cv_chain_release(&campaign->releases_hash, &release, broker->config.digest);
  return CV_OK;
}

static void draw(struct cv_broker *broker, uint32_t index, struct cv_mechanism *mechanism) {
  /* Seeded noise is a function of (seed, arm, release), so that tests get the same noise after a restart. */
  if (!broker->config.noise_seeded) {
    cv_mechanism_draw(mechanism, broker->config.noise);
    return;
  }
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, broker->config.noise_seed, CV_RNG_NOISE, index, mechanism->releases + 1);
  cv_mechanism_draw(mechanism, &seeded.rng);
}

void cv_epoch_draw_neutral(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  struct cv_rng_seeded seeded;
  for (uint32_t i = 0; campaign->gold.neutral != NULL && i < campaign->spec.arms; i++) {
    cv_rng_seeded_init(&seeded, broker->config.noise_seed, CV_RNG_NOISE, i, 0); /* releases count from 1 */
    cv_broker_gold_draw_noise(&campaign->gold, i, broker->config.noise_seeded ? &seeded.rng : broker->config.noise);
    cv_dirty_arm(broker, campaign, i);
  }
}

enum cv_err cv_epoch_open(struct cv_broker *broker, struct cv_broker_campaign *campaign, const struct cv_plan *plan) {
  CV_TRY(cv_epoch_add_plan(broker, campaign, plan));
  cv_epoch_number_rounds(campaign);
  cv_places_drop(broker, campaign);
  const uint64_t *shown = cv_shown_by(campaign, plan);
  for (uint32_t i = 0; i < plan->wants; i++) {
    struct cv_arm *arm = &campaign->arm[plan->want[i].arm];
    CV_REQUIRE(arm->plan == 0);
    arm->plan = plan->number;
    arm->want = plan->want[i].tokens;
    arm->next = arm->filled = 0;
    arm->expected = shown[i];
    arm->seen = 0;
    arm->sum = 0;
    arm->chain = campaign->plans_hash;
    arm->returned_count = 0;
    /* The noise is drawn here, before any token of the epoch is known (mechanism.h), and stored with the plan. */
    draw(broker, plan->want[i].arm, arm->mechanism);
    cv_dirty_arm(broker, campaign, plan->want[i].arm);
    cv_urn_add(&campaign->urn, plan->want[i].arm, arm->want);
    campaign->reserved += arm->want;
    campaign->open_arms++;
  }
  campaign->active_ms = broker->now_ms;
  broker->figures.plans++;
  cv_broker_campaign_mark(broker, campaign);
  return CV_OK;
}

/* The number of tokens in the release that closes the arm's open epoch. */
static uint64_t tokens_summed(const struct cv_broker_campaign *campaign, uint32_t index) {
  const struct cv_arm *arm = &campaign->arm[index];
  size_t i = campaign->releases;
  switch (cv_mechanism_cover(&campaign->privacy.law, arm->mechanism->releases + 1)) {
    case CV_COVER_ITEM:
      return arm->expected;
    case CV_COVER_BEFORE:
      while (campaign->release[--i].arm != index) {
      }
      return campaign->release[i].tokens;
    default:
      return arm->before + arm->expected;
  }
}

/* Charges for the release of the arm's epoch and makes it. */
static void release(struct cv_broker_campaign *campaign, uint32_t index, struct cv_broker_release *row) {
  struct cv_arm *arm = &campaign->arm[index];
  /* The charge fitted when the plan was accepted, and nothing else charges a running campaign. It is in the same batch
   * as the release, so neither is stored without the other. */
  CV_REQUIRE(cv_ledger_charge(&campaign->ledger, index, cv_epoch_price(campaign, index), NULL) == CV_OK);
  row->tokens = tokens_summed(campaign, index);
  /* The noise was drawn when the plan was opened; nothing random happens here. */
  row->noisy_sum = campaign->two == NULL ? cv_mechanism_release(arm->mechanism, arm->sum)
                                         : (int64_t)cv_mechanism_release_share(arm->mechanism, (uint64_t)arm->sum);
  row->nth = (uint32_t)arm->mechanism->releases;
}

enum cv_err cv_epoch_release(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                             const struct cv_broker_release *row) {
  CV_TRY(cv_epoch_add_release(broker, campaign, row));
  broker->totals.releases++;
  broker->figures.releases++;
  cv_broker_debug(broker, campaign, ": release %llu, of arm %u with %llu tokens", (unsigned long long)row->number,
                  row->arm + 1, (unsigned long long)row->tokens);
  cv_broker_campaign_mark(broker, campaign);
  return CV_OK;
}

/* Closes the arm's epoch with a release, of which with two brokers only this one's half is made, and makes the arm
 * ready for the next epoch. */
static enum cv_err close_with(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint32_t index,
                              const struct cv_broker_release *row) {
  struct cv_arm *arm = &campaign->arm[index];
  CV_TRY(campaign->two == NULL ? cv_epoch_release(broker, campaign, row)
                               : cv_two_close(broker, campaign, row, arm->filled, row->nth == 0));
  cv_urn_take(&campaign->urn, index, cv_arm_free_places(arm));
  campaign->reserved -= arm->want - arm->filled;
  campaign->open_arms--;
  /* Reset the arm for its next epoch. */
  arm->first += arm->filled;
  arm->before += arm->expected;
  arm->plan = arm->expected = arm->seen = 0;
  arm->want = arm->next = arm->filled = 0;
  arm->returned_count = 0;
  arm->sum = 0;
  cv_dirty_arm(broker, campaign, index);
  cv_broker_campaign_mark(broker, campaign);
  return CV_OK;
}

static uint64_t next_number(const struct cv_broker_campaign *campaign) {
  return (campaign->two == NULL ? campaign->releases : cv_two_closed(campaign)) + 1;
}

static enum cv_err close_epoch(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint32_t index) {
  const struct cv_arm *arm = &campaign->arm[index];
  CV_REQUIRE(arm->plan != 0 && arm->seen == arm->expected && arm->filled == arm->want);
  struct cv_broker_release row = {.number = next_number(campaign), .plan = arm->plan, .arm = index};
  release(campaign, index, &row);
  return close_with(broker, campaign, index, &row);
}

enum cv_err cv_epoch_close_early(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint32_t index) {
  struct cv_arm *arm = &campaign->arm[index];
  CV_REQUIRE(arm->plan != 0 && arm->filled < arm->want && campaign->spec.edges == 0);
  struct cv_broker_release row = {.number = next_number(campaign),
                                  .plan = arm->plan,
                                  .arm = index,
                                  .wanted = arm->first + arm->want,
                                  .given = arm->first + arm->filled};
  arm->expected = arm->seen;
  /* A sum of fewer tokens than the operator's smallest release never leaves, with whatever noise. With two brokers none
   * of fewer tokens than planned does: the co-broker closes an epoch only when it has all of them. */
  if (campaign->two == NULL && arm->seen > 0 && arm->seen >= campaign->privacy.least_tokens) {
    release(campaign, index, &row);
  }
  return close_with(broker, campaign, index, &row);
}

enum cv_err cv_epoch_add(struct cv_broker *broker, struct cv_broker_campaign *campaign, const uint32_t *list,
                         uint32_t n, const int64_t *value) {
  cv_shown_add(campaign, list, n, value);
  /* One token can complete several epochs; they close in the order of the list, so that releases are numbered alike
   * after a restart. */
  for (uint32_t i = 0; i < n; i++) {
    if (campaign->arm[list[i]].seen == campaign->arm[list[i]].expected) {
      CV_TRY(close_epoch(broker, campaign, list[i]));
    }
  }
  return CV_OK;
}
