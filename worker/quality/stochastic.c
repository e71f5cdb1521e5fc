/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/rng.h"
#include "worker/quality/adversaries.h"
#include "worker/quality/coins.h"

static double mean_of(const struct cv_adversary *self, uint32_t arm) {
  return arm == self->best ? 0.55 : 0.5;
}

static double gain(const struct cv_adversary *self, uint32_t arm, uint64_t t) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, self->seed, CV_RNG_SCORE, arm, t);
  return cv_rng_unit(&rng.rng) < mean_of(self, arm) ? 1 : 0;
}

static void fill(const struct cv_adversary *self, uint32_t arm, uint64_t t, size_t count, int32_t *ret_score) {
  const struct cv_coins coins = {
      .path = cv_adversary_path(self, arm), .first = t, .count = count, .low = mean_of(self, arm)};
  cv_coins_fill(&coins, ret_score);
}

const struct cv_adversary_class cv_adversary_stochastic = {.name = "stochastic", .gain = gain, .fill = fill};
