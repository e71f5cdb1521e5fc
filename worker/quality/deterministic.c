/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/adversaries.h"

static double gain(const struct cv_adversary *self, uint32_t arm, uint64_t t) {
  switch (arm) {
    case 0:
      return 0.38;
    case 1:
      return t % 2 == 0 ? 1 : 0;
    case 2:
      return t % 3 == 0 ? 1 : 0;
    default:
      return 0;
  }
}

const struct cv_adversary_class cv_adversary_deterministic = {.name = "deterministic", .fixed_best = 2, .gain = gain};
