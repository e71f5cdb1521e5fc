/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/rng.h"
#include "worker/quality/adversaries.h"

static double gain(const struct cv_adversary *self, uint32_t arm, uint64_t t) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, self->seed, CV_RNG_SCORE, arm, t);
  return cv_rng_unit(&rng.rng) < (arm == self->best ? 0.55 : 0.5) ? 1 : 0;
}

const struct cv_adversary_class cv_adversary_stochastic = {.name = "stochastic", .gain = gain};
