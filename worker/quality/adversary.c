/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/adversary.h"

#include <string.h>

#include "common/base/grid.h"
#include "worker/quality/adversaries.h"

#define ADDRESS(file, ...) &cv_adversary_##file,
static const struct cv_adversary_class *const table[] = {CV_ADVERSARIES(ADDRESS)};

const struct cv_adversary_class *cv_adversary_at(size_t index) {
  return index < CV_COUNT(table) ? table[index] : NULL;
}

const struct cv_adversary_class *cv_adversary_find(const char *name) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    if (strcmp(table[i]->name, name) == 0) {
      return table[i];
    }
  }
  return NULL;
}

double cv_adversary_gain(const struct cv_adversary *self, uint32_t arm, uint64_t t, uint32_t switched) {
  CV_REQUIRE(arm < self->arms && t >= 1);
  return cv_adversary_minds(self->memory, switched) ? 0 : self->class->gain(self, arm, t);
}

void cv_adversary_fill(const struct cv_adversary *self, uint32_t arm, uint64_t t, size_t count, int32_t *ret_score) {
  CV_REQUIRE(arm < self->arms && t >= 1);
  if (self->class->fill != NULL) {
    self->class->fill(self, arm, t, count, ret_score);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    ret_score[i] = (int32_t)cv_grid_from(self->class->gain(self, arm, t + i));
  }
}

double cv_adversary_total(const struct cv_adversary *self, uint32_t arm, uint64_t n) {
  double sum = 0;
  for (uint64_t t = 1; t <= n; t++) {
    sum += cv_adversary_gain(self, arm, t, 0);
  }
  return sum;
}
