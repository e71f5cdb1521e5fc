/* SPDX-License-Identifier: Apache-2.0 */
/* Campaigns with two brokers, what happens to the co-broker, and who lies. From random streams of their own. */
#include <string.h>

#include "common/base/mechanisms.h"
#include "common/base/rng.h"
#include "common/base/split.h"
#include "tests/sim/scenario.h"

enum { IN_THREE = 3, PATIENCE_MS = 6000 };

/* A hired worker of a liar uses up its slots with false proofs, and then nobody else can give its tokens. */
static bool hires_liar(const struct scenario *s) {
  bool liar = false;
  for (uint32_t i = 0; i < s->arms && s->budget_micro > 0; i++) {
    liar = liar || s->worker[i] > (uint64_t)s->pools * s->pool_workers;
  }
  return liar;
}

/* What a campaign with two brokers may have: scores or bits, a mechanism with noise, no graph and no gold items. */
static bool suits(const struct scenario *s) {
  bool plain = strcmp(s->privatizer.name, "none") == 0 || strcmp(s->privatizer.name, "randomized-response") == 0;
  return plain && strcmp(s->mechanism, "none") != 0 && !s->graph && s->golds == 0 && !hires_liar(s);
}

static void draw_cobroker_faults(struct scenario *s) {
  static const uint32_t usual[FAULT_COUNT] = {
      [FAULT_CRASH_COBROKER] = 6, [FAULT_DISK_COBROKER] = 2, [FAULT_CUT_COBROKER] = 4};
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 95, 1, 0);
  for (int i = FAULT_CRASH_COBROKER; i <= FAULT_CUT_COBROKER; i++) {
    s->weight[i] = cv_rng_below(&rng.rng, 4) > 0 ? usual[i] : 0;
  }
  s->co_rollback = s->rollback != ROLLBACK_NONE      ? ROLLBACK_NONE
                   : cv_rng_below(&rng.rng, 10) == 0 ? ROLLBACK_DATABASE
                   : cv_rng_below(&rng.rng, 16) == 0 ? ROLLBACK_BOTH
                                                     : ROLLBACK_NONE;
  struct cv_rng_seeded again; /* from a random stream of its own */
  cv_rng_seeded_init(&again, s->seed, 95, 5, 0);
  s->weight[FAULT_REVOKE] = cv_rng_below(&again.rng, 3) == 0 ? 5 : 0;
  s->weight[FAULT_ROLLBACK_COBROKER] = s->co_rollback == ROLLBACK_NONE ? 0 : 4;
}

/* A campaign that stalls is cancelled by its requester. */
static void cancel_late(struct scenario *s) {
  if (s->ending != ENDING_DEADLINE) {
    s->ending = ENDING_CANCEL;
    s->ending_ms = PATIENCE_MS;
  }
  s->campaigns = 1; /* only the first one is cancelled */
}

/* In one of three worlds without a rollback one of the brokers lies. A lie may end a campaign, or stall it until its
 * requester cancels it. */
static void draw_lie(struct scenario *s) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 95, 2, 0);
  if (cv_rng_below(&rng.rng, 3) > 0 || s->rollback != ROLLBACK_NONE || s->co_rollback != ROLLBACK_NONE) {
    return;
  }
  s->lie = (enum lie)(1 + cv_rng_below(&rng.rng, LIE_COUNT - 1));
  s->lie_ms = 50 + cv_rng_below(&rng.rng, 800);
  s->lie_times = 1 + (uint32_t)cv_rng_below(&rng.rng, 3);
  s->lie_times *= s->lie == LIE_SILENCE || s->lie == LIE_SILENCE_CO ? 20 : 1;
  cancel_late(s);
}

/* In one of six worlds with many workers the co-broker lets each of them give one token, and the broker more. */
static void draw_limit(struct scenario *s) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 95, 3, 0);
  bool many = (uint64_t)s->pools * s->pool_workers > 3 * s->tokens * s->campaigns * s->requesters;
  s->co_epsilon_micro = s->worker_epsilon_micro;
  if (cv_rng_below(&rng.rng, 6) == 0 && many && !s->persons && s->budget_micro == 0) {
    s->co_epsilon_micro = scenario_cost(s);
  }
}

void scenario_draw_two(struct scenario *s, bool calm) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 95, 0, 0);
  if (cv_rng_below(&rng.rng, IN_THREE) > 0 || !suits(s)) {
    return;
  }
  s->two = true;
  s->score_bits = cv_split_bits_of(s->pairs || s->applied.law.bits);
  draw_limit(s);
  if (!calm && !s->peaceful) {
    draw_cobroker_faults(s);
    draw_lie(s);
    if (s->co_rollback == ROLLBACK_DATABASE && s->co_epsilon_micro < s->worker_epsilon_micro) {
      cancel_late(s); /* a recovery charges every worker, which then has nothing left for another campaign */
    }
  }
}

bool scenario_lies_broker(const struct scenario *s) {
  return s->lie > LIE_NONE && s->lie <= LIE_SILENCE;
}
