/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/hindsight.h"

/* Releases are in order of their plans; those of this one start at `from`. */
static bool was_released(const struct cv_export *export, size_t from, uint64_t plan, uint32_t arm) {
  for (size_t i = from; i < export->releases && export->release[i].plan == plan; i++) {
    if (export->release[i].arm == arm) {
      return true;
    }
  }
  return false;
}

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
  uint32_t before = UINT32_MAX;
  size_t release = 0;
  for (size_t p = 0; p < export->plans; p++) {
    const struct cv_plan *plan = &export->plan[p];
    for (uint32_t w = 0; w < plan->wants; w++) {
      const struct cv_want *want = &plan->want[w];
      if (want->arm >= adversary->arms || !was_released(export, release, plan->number, want->arm)) {
        find_best(adversary, &sum);
        return sum;
      }
      for (uint32_t i = 0; i < want->tokens; i++, before = want->arm) {
        bool switched = before != UINT32_MAX && before != want->arm;
        sum.gained += cv_adversary_gain(adversary, want->arm, ++sum.rounds, switched);
      }
    }
    while (release < export->releases && export->release[release].plan <= plan->number) {
      release++;
    }
  }
  find_best(adversary, &sum);
  return sum;
}
