/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/scenario.h"

#include <stdio.h>
#include <string.h>

#include "common/base/rng.h"

static void draw_campaign(struct scenario *s, struct cv_rng *rng) {
  static const char *const mechanisms[] = {"none", "hybrid",   "hybrid",   "hybrid", "binary",  "binary-honaker",
                                           "kary", "segments", "doubling", "batch",  "per-item"};
  s->arms = 2 + (uint32_t)cv_rng_below(rng, SCENARIO_ARMS - 1);
  s->campaigns = cv_rng_below(rng, 4) == 0 ? 2 : 1;
  s->tokens_per_round = 2 + (uint32_t)cv_rng_below(rng, 16);
  s->tokens_per_worker = 1 + (uint32_t)cv_rng_below(rng, 3);
  s->tokens = 60 + cv_rng_below(rng, 260);
  for (uint32_t i = 0; i < s->arms; i++) {
    s->mean[i] = 0.25 + 0.5 * cv_rng_unit(rng);
  }
  s->alpha = cv_rng_below(rng, 2) == 0 ? 0.05 : 0.25;
  s->radius = cv_rng_below(rng, 3) == 0 ? "sound" : "printed";
  s->settled = cv_rng_below(rng, 2) == 0 ? "pull" : "hold";
  s->mechanism = mechanisms[cv_rng_below(rng, CV_COUNT(mechanisms))];
  s->epsilon_micro = 1000000 + cv_rng_below(rng, 4) * 1000000;
  s->noise_seeded = cv_rng_below(rng, 3) > 0;
}

static void draw_faults(struct scenario *s, struct cv_rng *rng) {
  static const uint32_t usual[FAULT_COUNT] = {
      [FAULT_CUT] = 6,
      [FAULT_CRASH_BROKER] = 6,
      [FAULT_CRASH_THIRDPARTY] = 4,
      [FAULT_CRASH_CREW] = 2,
      [FAULT_CRASH_REQUESTER] = 1,
      [FAULT_DISK_BROKER] = 2,
      [FAULT_DISK_THIRDPARTY] = 1,
      [FAULT_JUMP] = 1,
  };
  s->faults = 1 + (uint32_t)cv_rng_below(rng, 24);
  s->gap_ms = 20 + (uint32_t)cv_rng_below(rng, 200);
  for (int i = 0; i < FAULT_COUNT; i++) { /* one world has some kinds of faults only */
    s->weight[i] = cv_rng_below(rng, 3) > 0 ? usual[i] : 0;
  }
  s->weight[FAULT_LOSE_THIRDPARTY] = cv_rng_below(rng, 6) == 0 ? 2 : 0;
  s->rollback = cv_rng_below(rng, 10) == 0   ? ROLLBACK_DATABASE
                : cv_rng_below(rng, 16) == 0 ? ROLLBACK_BOTH
                                             : ROLLBACK_NONE;
  s->weight[FAULT_ROLLBACK] = s->rollback == ROLLBACK_NONE ? 0 : 4;
  s->liars = (uint32_t)cv_rng_below(rng, 3);
  uint64_t ending = cv_rng_below(rng, 16);
  s->ending = ending == 0 ? ENDING_CANCEL : ending == 1 ? ENDING_DEADLINE : ending == 2 ? ENDING_IDLE : ENDING_PLAIN;
  s->ending_ms = 200 + cv_rng_below(rng, 3000);
}

void scenario_draw(uint64_t seed, bool calm, struct scenario *ret) {
  struct cv_rng_seeded seeded;
  struct scenario s = {.seed = seed};
  cv_rng_seeded_init(&seeded, seed, 77, 1, 0);
  struct cv_rng *rng = &seeded.rng;
  draw_campaign(&s, rng);
  s.crews = 1 + (uint32_t)cv_rng_below(rng, 4);
  s.concurrency = 2 + (uint32_t)cv_rng_below(rng, 24);
  s.lease_ms = 1000 + (uint32_t)cv_rng_below(rng, 4000);
  s.queue = 8 + (uint32_t)cv_rng_below(rng, 120);
  s.delay_ms = 1 + (uint32_t)cv_rng_below(rng, 20);
  if (!calm) {
    draw_faults(&s, rng);
  }
  *ret = s;
}

static void choose(struct cv_choice *choice, const char *name) {
  (void)snprintf(choice->name, sizeof(choice->name), "%s", name);
}

void scenario_spec(const struct scenario *s, struct cv_spec *ret) {
  struct cv_spec spec = {.name = "sim",
                         .arms = s->arms,
                         .epsilon_micro = s->epsilon_micro,
                         .tokens_per_worker = s->tokens_per_worker,
                         .thirdparty_trusted = strcmp(s->mechanism, "none") == 0,
                         .tokens = s->tokens,
                         .deadline_ms = s->ending == ENDING_DEADLINE ? s->ending_ms : 0,
                         .idle_ms = s->ending == ENDING_IDLE ? s->ending_ms : 0};
  choose(&spec.policy, "ppar");
  choose(&spec.mechanism, s->mechanism);
  choose(&spec.privatizer, "none");
  struct cv_params *params = &spec.policy.params;
  CV_REQUIRE(cv_params_set_number(params, "alpha", s->alpha) == CV_OK &&
             cv_params_set_number(params, "tokens_per_round", s->tokens_per_round) == CV_OK &&
             cv_params_set_text(params, "radius", s->radius) == CV_OK &&
             cv_params_set_text(params, "settled", s->settled) == CV_OK);
  *ret = spec;
}
