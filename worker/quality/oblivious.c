/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/grid.h"
#include "worker/quality/adversaries.h"

enum { FROZEN = 200 };

static double gain(const struct cv_adversary *self, uint32_t arm, uint64_t t) {
  return cv_adversary_drawn(self, arm, t - t % FROZEN);
}

static void fill(const struct cv_adversary *self, uint32_t arm, uint64_t t, size_t count, int32_t *ret_score) {
  int32_t frozen = 0;
  for (size_t i = 0; i < count; i++) {
    if (i == 0 || (t + i) % FROZEN == 0) {
      frozen = (int32_t)cv_grid_from(gain(self, arm, t + i));
    }
    ret_score[i] = frozen;
  }
}

const struct cv_adversary_class cv_adversary_oblivious = {.name = "oblivious", .gain = gain, .fill = fill};
