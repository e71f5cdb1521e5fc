/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/scenario.h"

enum { IN_FOUR = 4 };

static void draw_faults(struct scenario *s, struct cv_rng *rng) {
  static const uint32_t usual[FAULT_COUNT] = {[FAULT_COMMIT] = 8,  [FAULT_CUT_SERVER] = 3, [FAULT_PROMOTE] = 3,
                                              [FAULT_RESTORE] = 3, [FAULT_LOAD] = 10,      [FAULT_FREEZE] = 2};
  for (int i = FAULT_COMMIT; i <= FAULT_RESTORE; i++) {
    s->weight[i] = cv_rng_below(rng, 4) > 0 ? usual[i] : 0;
  }
  s->weight[FAULT_STALL] = cv_rng_below(rng, 2) == 0 ? 4 : s->weight[FAULT_STALL];
  s->weight[FAULT_LOAD] = cv_rng_below(rng, 2) == 0 ? usual[FAULT_LOAD] : 0;
  s->weight[FAULT_FREEZE] = cv_rng_below(rng, 2) == 0 ? usual[FAULT_FREEZE] : 0;
}

/* Of the seeds with one broker, whose database is neither damaged nor replaced. From a random stream of its own. */
void scenario_draw_shared(struct scenario *s, bool calm) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 97, 0, 0);
  if (s->two || s->rollback != ROLLBACK_NONE || cv_rng_below(&rng.rng, IN_FOUR) > 0) {
    return;
  }
  s->shared = true;
  s->weight[FAULT_DAMAGE] = s->weight[FAULT_ROTATE] = 0;
  if (!calm && !s->peaceful) {
    draw_faults(s, &rng.rng);
  }
}
