/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/hindsight.h"

/* Finds the single arm with the highest total gain over the played rounds. */
static void find_best(const struct cv_adversary *adversary, struct cv_hindsight *sum) {
  for (uint32_t arm = 0; arm < adversary->arms; arm++) {
    double total = cv_adversary_total(adversary, arm, sum->rounds);
    if (arm == 0 || total > sum->best) {
      sum->best = total;
      sum->arm = arm;
    }
  }
}

struct cv_hindsight cv_hindsight_of(const struct cv_adversary *adversary, const struct cv_export *export) {
  struct cv_hindsight sum = {.is_known = true};
  uint32_t before = UINT32_MAX, switched = 0;
  uint64_t released = export->progress.releases; /* each release answers one want */
  for (size_t p = 0; p < export->plans && export->plan[p].wants <= released; p++) {
    const struct cv_plan *plan = &export->plan[p];
    released -= plan->wants;
    for (uint32_t w = 0; w < plan->wants; w++) {
      const struct cv_want *want = &plan->want[w];
      for (uint32_t i = 0; i < want->tokens && want->arm < adversary->arms; i++, before = want->arm) {
        switched = cv_adversary_switched(switched, before != UINT32_MAX && before != want->arm);
        sum.gained += cv_adversary_gain(adversary, want->arm, ++sum.rounds, switched);
      }
    }
  }
  find_best(adversary, &sum);
  return sum;
}
