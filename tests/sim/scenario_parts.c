/* SPDX-License-Identifier: Apache-2.0 */
/* Gateways that have a part of a data file each. From a random stream of its own. */
#include "common/base/rng.h"
#include "tests/sim/scenario.h"

enum { IN_THREE = 3, ENOUGH = 2000, PATIENCE_MS = 12000 /* longer than an arm stays paused at a gateway */ };

/* Without faults, and with a single campaign: then the rows of every gateway are used before an arm ends. */
static void make_peaceful(struct scenario *s) {
  s->peaceful = true;
  s->faults = s->liars = s->pests = s->rivals = 0;
  s->impostor = s->picky = false;
  s->requesters = s->campaigns = 1;
  s->own_tokens = 0;
  s->worker_epsilon_micro = UINT32_MAX;
}

/* In half of the worlds with parts the rows may run out before the campaign ends. Which row a place has depends on the
 * order of events, so the noise decides what happens, and no run without faults is compared. */
void scenario_draw_parts(struct scenario *s) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, s->seed, 98, 0, 0);
  struct cv_rng *rng = &seeded.rng;
  bool suits = !s->persons && !s->graph && !s->pairs && s->golds == 0 && s->budget_micro == 0;
  if (cv_rng_below(rng, IN_THREE) > 0 || !suits) {
    return;
  }
  s->parts = true;
  s->noise_seeded = false;
  s->part_rows = ENOUGH;
  if (cv_rng_below(rng, 2) > 0) {
    return;
  }
  s->part_rows = 1 + (uint32_t)cv_rng_below(rng, 2 * s->tokens / (s->arms * s->pools) + 1);
  bool is_quiet = !s->two && !s->shared && s->rollback == ROLLBACK_NONE && s->ending == ENDING_PLAIN;
  if (is_quiet && cv_rng_below(rng, 3) == 0) {
    make_peaceful(s);
  }
  if (s->ending == ENDING_PLAIN || (s->ending == ENDING_CANCEL && s->campaigns > 1)) {
    s->ending = ENDING_IDLE;
    s->ending_ms = PATIENCE_MS;
  }
}
