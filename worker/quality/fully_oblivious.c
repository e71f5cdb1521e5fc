/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/rng.h"
#include "worker/quality/adversaries.h"

static const double E = 0.05;

double cv_adversary_drawn(const struct cv_adversary *self, uint32_t arm, uint64_t t) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, self->seed, CV_RNG_SCORE, arm, t);
  double low = arm == self->best ? 0.5 : 0.5 - E, p = low + 2 * E * cv_rng_unit(&rng.rng);
  return cv_rng_unit(&rng.rng) < p ? 1 : 0;
}

const struct cv_adversary_class cv_adversary_fully_oblivious = {.name = "fully-oblivious", .gain = cv_adversary_drawn};
