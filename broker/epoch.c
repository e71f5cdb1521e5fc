/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epochs: a plan opens one per arm with its noise already drawn, tokens fill its places, and the token that fills the
 * last place closes it with a release. Exactly `want` tokens, always; with a feedback graph exactly as many as the
 * plan's plays show of the arm (shown.c).
 */
#include <stdlib.h>
#include <string.h>

#include "broker/state.h"
#include "common/base/grid.h"

/* Index bits of a place; the arm comes above them. */
enum { INDEX_BITS = 40 };

uint64_t cv_epoch_place_bit(uint32_t arm, uint64_t index) {
  return (uint64_t)arm << INDEX_BITS | index;
}

bool cv_epoch_has_place(const struct cv_campaign *campaign, uint32_t arm, uint64_t index) {
  return arm < campaign->spec.arms && index >> INDEX_BITS == 0;
}

uint32_t cv_epoch_place_arm(uint64_t bit) {
  return (uint32_t)(bit >> INDEX_BITS);
}

uint32_t cv_arm_free_places(const struct cv_arm *arm) {
  return arm->plan == 0 ? 0 : arm->want - arm->next + arm->returned_count;
}

bool cv_arm_take_place(struct cv_campaign *campaign, uint32_t index, uint32_t *ret_position) {
  struct cv_arm *arm = &campaign->arm[index];
  while (cv_arm_free_places(arm) > 0) {
    uint32_t position = arm->returned_count > 0 ? arm->returned[--arm->returned_count] : arm->next++;
    campaign->free_places--;
    if (!cv_chunks_bit(&campaign->places, cv_epoch_place_bit(index, arm->first + position))) {
      *ret_position = position;
      return true;
    }
  }
  return false;
}

enum cv_err cv_arm_return_place(struct cv_campaign *campaign, uint32_t index, uint32_t position) {
  struct cv_arm *arm = &campaign->arm[index];
  if (arm->returned_count == arm->returned_cap) {
    uint32_t cap = arm->returned_cap == 0 ? 64 : arm->returned_cap * 2;
    uint32_t *returned = realloc(arm->returned, cap * sizeof(*returned));
    if (returned == NULL) {
      return CV_ERR_NOMEM;
    }
    arm->returned = returned;
    arm->returned_cap = cap;
  }
  arm->returned[arm->returned_count++] = position;
  campaign->free_places++;
  return CV_OK;
}

static const uint32_t NOBODY = UINT32_MAX;

static enum cv_err refuse(struct cv_rank_refused *ret, enum cv_end reason, uint64_t asked, uint64_t left) {
  ret->reason = reason;
  ret->asked = asked;
  ret->left = left;
  return CV_ERR_DENIED;
}

uint64_t cv_epoch_price(const struct cv_campaign *campaign, uint32_t arm) {
  uint64_t releases = campaign->arm[arm].mechanism->releases;
  uint64_t before = cv_campaign_cost(campaign, releases);
  uint64_t after = cv_campaign_cost(campaign, releases + 1);
  return after > before ? after - before : 0;
}

/* Each arm is known and there once. */
static enum cv_err check_names(const struct cv_campaign *campaign, const struct cv_plan *plan, struct cv_why *why) {
  uint8_t seen[CV_ARMS_MAX / 8] = {0};
  if (plan->wants == 0) {
    return cv_fail(why, CV_ERR_DENIED, "plan %llu asks for nothing", (unsigned long long)plan->number);
  }
  for (uint32_t i = 0; i < plan->wants; i++) {
    uint32_t arm = plan->want[i].arm;
    if (arm >= campaign->spec.arms) {
      return cv_fail(why, CV_ERR_DENIED, "arm %u is unknown; expected below %u", arm, campaign->spec.arms);
    }
    if ((seen[arm / 8] >> (arm % 8) & 1) != 0) {
      return cv_fail(why, CV_ERR_DENIED, "arm %u is asked for twice", arm);
    }
    seen[arm / 8] |= (uint8_t)(1U << (arm % 8));
  }
  return CV_OK;
}

/* Each release has as many tokens as the operator wants, and no more than a plan may ask for. */
static enum cv_err check_sizes(const struct cv_campaign *campaign, const struct cv_plan *plan, struct cv_why *why) {
  uint64_t shown[CV_ARMS_MAX];
  cv_shown_by(campaign, plan, shown);
  for (uint32_t i = 0; i < plan->wants; i++) {
    const struct cv_want *want = &plan->want[i];
    if (shown[i] < campaign->privacy.least_tokens || want->tokens > CV_PLAN_TOKENS_MAX) {
      return cv_fail(why, CV_ERR_DENIED, "%llu tokens of arm %u in one release; expected %u to %d",
                     (unsigned long long)shown[i], want->arm, campaign->privacy.least_tokens, CV_PLAN_TOKENS_MAX);
    }
  }
  return CV_OK;
}

/* Of `asked` micro-epsilon of an arm so much is `left`. */
static enum cv_err check_ledger(const struct cv_campaign *campaign, const struct cv_plan *plan, uint64_t *ret_asked,
                                uint64_t *ret_left, struct cv_why *why) {
  for (uint32_t i = 0; i < plan->wants; i++) {
    uint32_t arm = plan->want[i].arm;
    if (cv_mechanism_is_spent(campaign->arm[arm].mechanism)) {
      return cv_fail(why, CV_ERR_DENIED, "arm %u has made the %llu releases that its noise is made for", arm,
                     (unsigned long long)campaign->privacy.law.horizon);
    }
    uint64_t price = cv_epoch_price(campaign, arm);
    if (cv_ledger_ask(&campaign->ledger, arm, price, why) != CV_OK) {
      *ret_asked = price;
      *ret_left = cv_ledger_left(&campaign->ledger, arm);
      return CV_ERR_DENIED;
    }
  }
  return CV_OK;
}

enum cv_err cv_epoch_check(const struct cv_broker *broker, const struct cv_campaign *campaign,
                           const struct cv_plan *plan, struct cv_rank_refused *ret_refused, struct cv_why *why) {
  uint64_t asked = 0;
  uint64_t left = campaign->spec.tokens - campaign->tokens;
  for (uint32_t i = 0; i < plan->wants; i++) {
    asked += plan->want[i].tokens;
  }
  if (check_names(campaign, plan, why) != CV_OK) {
    return refuse(ret_refused, CV_END_REFUSED, asked, left);
  }
  if (check_sizes(campaign, plan, why) != CV_OK) {
    /* A phase that no limit could hold is one that does not fit this one. */
    return refuse(ret_refused, asked > CV_PLAN_TOKENS_MAX && asked > left ? CV_END_TOKENS : CV_END_REFUSED, asked,
                  left);
  }
  uint64_t epsilon = asked, rest = left;
  if (check_ledger(campaign, plan, &epsilon, &rest, why) != CV_OK) {
    return refuse(ret_refused, CV_END_LEDGER, epsilon, rest);
  }
  if (campaign->spec.cost_micro != NULL) {
    uint64_t price = cv_payroll_price(&campaign->spec, plan);
    uint64_t money = campaign->spec.budget_micro - campaign->payroll.paid_micro;
    if (price > money) {
      (void)cv_fail(why, CV_ERR_DENIED, "a plan that costs %.6f; expected at most the %.6f that is left of %.6f",
                    (double)price / 1e6, (double)money / 1e6, (double)campaign->spec.budget_micro / 1e6);
      return refuse(ret_refused, CV_END_BUDGET, price, money);
    }
  }
  if (asked > left) {
    (void)cv_fail(why, CV_ERR_DENIED, "%llu tokens asked for, %llu of %llu left", (unsigned long long)asked,
                  (unsigned long long)left, (unsigned long long)campaign->spec.tokens);
    return refuse(ret_refused, CV_END_TOKENS, asked, left);
  }
  if (asked / CV_CHUNK_BITS + 2 * (uint64_t)plan->wants > campaign->places.most) {
    (void)cv_fail(why, CV_ERR_DENIED, "%llu places at once; expected fewer", (unsigned long long)asked);
    return refuse(ret_refused, CV_END_REFUSED, asked, left);
  }
  return CV_OK;
}

static uint64_t tokens_of(const struct cv_plan *plan) {
  uint64_t tokens = 0;
  for (uint32_t i = 0; i < plan->wants; i++) {
    tokens += plan->want[i].tokens;
  }
  return tokens;
}

/* The last arm of which a plan asks for tokens; NOBODY if there is none. */
static uint32_t last_arm(const struct cv_plan *plan) {
  for (uint32_t i = plan->wants; i-- > 0;) {
    if (plan->want[i].tokens > 0) {
      return plan->want[i].arm;
    }
  }
  return NOBODY;
}

void cv_epoch_number_rounds(struct cv_campaign *campaign) {
  if (campaign->plans == 0) {
    return;
  }
  const struct cv_plan *plan = &campaign->plan[campaign->plans - 1];
  uint64_t round = campaign->planned;
  uint32_t before = campaign->plans > 1 ? last_arm(&campaign->plan[campaign->plans - 2]) : NOBODY;
  for (uint32_t i = 0; i < plan->wants; i++) {
    struct cv_arm *arm = &campaign->arm[plan->want[i].arm];
    arm->round = round;
    arm->switched = before != NOBODY && before != plan->want[i].arm;
    round += plan->want[i].tokens;
    before = plan->want[i].tokens > 0 ? plan->want[i].arm : before;
  }
}

enum cv_err cv_epoch_add_plan(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_plan *plan) {
  if (campaign->plans == campaign->plans_cap) {
    size_t cap = campaign->plans_cap == 0 ? 16 : campaign->plans_cap * 2;
    struct cv_plan *grown = realloc(campaign->plan, cap * sizeof(*grown));
    if (grown == NULL) {
      return CV_ERR_NOMEM;
    }
    campaign->plan = grown;
    campaign->plans_cap = cap;
  }
  struct cv_want *want = calloc(plan->wants, sizeof(*want));
  if (want == NULL) {
    return CV_ERR_NOMEM;
  }
  memcpy(want, plan->want, plan->wants * sizeof(*want));
  campaign->planned += campaign->plans > 0 ? tokens_of(&campaign->plan[campaign->plans - 1]) : 0;
  campaign->plan[campaign->plans++] = (struct cv_plan){.number = plan->number, .wants = plan->wants, .want = want};
  cv_chain_plan(&campaign->plans_hash, plan, broker->config.digest);
  return CV_OK;
}

enum cv_err cv_epoch_add_release(struct cv_broker *broker, struct cv_campaign *campaign,
                                 const struct cv_release_row *row) {
  if (campaign->releases == campaign->releases_cap) {
    size_t cap = campaign->releases_cap == 0 ? 64 : campaign->releases_cap * 2;
    struct cv_release_row *grown = realloc(campaign->release, cap * sizeof(*grown));
    if (grown == NULL) {
      return CV_ERR_NOMEM;
    }
    campaign->release = grown;
    campaign->releases_cap = cap;
  }
  campaign->release[campaign->releases++] = *row;
  struct cv_release release;
  cv_campaign_release(campaign, campaign->releases - 1, &release);
  cv_chain_release(&campaign->releases_hash, &release, broker->config.digest);
  return CV_OK;
}

static void draw(struct cv_broker *broker, uint32_t index, struct cv_mechanism *mechanism) {
  if (!broker->config.noise_seeded) {
    cv_mechanism_draw(mechanism, broker->config.noise);
    return;
  }
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, broker->config.noise_seed, CV_RNG_NOISE, index, mechanism->releases + 1);
  cv_mechanism_draw(mechanism, &seeded.rng);
}

enum cv_err cv_epoch_open(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_plan *plan) {
  uint64_t shown[CV_ARMS_MAX];
  CV_TRY(cv_epoch_add_plan(broker, campaign, plan));
  cv_epoch_number_rounds(campaign);
  cv_shown_by(campaign, plan, shown);
  for (uint32_t i = 0; i < plan->wants; i++) {
    struct cv_arm *arm = &campaign->arm[plan->want[i].arm];
    CV_REQUIRE(arm->plan == 0);
    arm->plan = plan->number;
    arm->want = plan->want[i].tokens;
    arm->next = arm->filled = 0;
    arm->expected = shown[i];
    arm->seen = 0;
    arm->sum = 0;
    arm->returned_count = 0;
    draw(broker, plan->want[i].arm, arm->mechanism);
    cv_dirty_arm(broker, campaign, plan->want[i].arm);
    campaign->free_places += arm->want;
    campaign->reserved += arm->want;
    campaign->open_arms++;
  }
  campaign->active_ms = broker->now_ms;
  broker->figures.plans++;
  cv_campaign_mark(broker, campaign);
  return CV_OK;
}

/* Forgets the bits of places below the next epoch, as far as whole chunks go. */
static void drop_places(struct cv_broker *broker, struct cv_campaign *campaign, uint32_t index, uint64_t from,
                        uint64_t to) {
  uint64_t first = cv_epoch_place_bit(index, from) / CV_CHUNK_BITS;
  uint64_t end = cv_epoch_place_bit(index, to) / CV_CHUNK_BITS;
  for (uint64_t number = first; number < end; number++) {
    struct cv_chunk *chunk = cv_chunks_find(&campaign->places, number);
    if (chunk != NULL && chunk->written == 0) {
      cv_chunks_drop(&campaign->places, chunk);
    } else if (chunk != NULL) {
      cv_dirty_chunk(broker, campaign->id, CV_CHUNK_PLACES, chunk);
    }
  }
}

/* Of the release that closes the arm's open epoch. */
static uint64_t tokens_summed(const struct cv_campaign *campaign, uint32_t index) {
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

enum cv_err cv_epoch_close(struct cv_broker *broker, struct cv_campaign *campaign, uint32_t index) {
  struct cv_arm *arm = &campaign->arm[index];
  CV_REQUIRE(arm->plan != 0 && arm->seen == arm->expected && arm->filled == arm->want);
  /* It fitted when the plan was accepted, and nothing else charges a campaign that runs. */
  CV_REQUIRE(cv_ledger_charge(&campaign->ledger, index, cv_epoch_price(campaign, index), NULL) == CV_OK);
  struct cv_release_row row = {
      .number = campaign->releases + 1,
      .plan = arm->plan,
      .tokens = tokens_summed(campaign, index),
      .noisy_sum = cv_mechanism_release(arm->mechanism, arm->sum),
      .arm = index,
  };
  row.nth = (uint32_t)arm->mechanism->releases;
  CV_TRY(cv_epoch_add_release(broker, campaign, &row));
  broker->totals.releases++;
  campaign->free_places -= cv_arm_free_places(arm);
  campaign->open_arms--;
  drop_places(broker, campaign, index, arm->first, arm->first + arm->want);
  arm->first += arm->want;
  arm->before += arm->expected;
  arm->plan = arm->expected = arm->seen = 0;
  arm->want = arm->next = arm->filled = 0;
  arm->returned_count = 0;
  arm->sum = 0;
  cv_dirty_arm(broker, campaign, index);
  broker->figures.releases++;
  cv_campaign_mark(broker, campaign);
  return CV_OK;
}
