/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/adversaries.h"

enum { FROZEN = 200 };

static double gain(const struct cv_adversary *self, uint32_t arm, uint64_t t) {
  return cv_adversary_drawn(self, arm, t - t % FROZEN);
}

const struct cv_adversary_class cv_adversary_oblivious = {.name = "oblivious", .gain = gain};
