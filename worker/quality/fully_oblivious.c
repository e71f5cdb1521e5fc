/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/rng.h"
#include "worker/quality/adversaries.h"
#include "worker/quality/coins.h"

static const double E = 0.05;

static double low_of(const struct cv_adversary *self, uint32_t arm) {
  return arm == self->best ? 0.5 : 0.5 - E;
}

double cv_adversary_drawn(const struct cv_adversary *self, uint32_t arm, uint64_t t) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, self->seed, CV_RNG_SCORE, arm, t);
  double p = low_of(self, arm) + 2 * E * cv_rng_unit(&rng.rng);
  return cv_rng_unit(&rng.rng) < p ? 1 : 0;
}

static void fill(const struct cv_adversary *self, uint32_t arm, uint64_t t, size_t count, int32_t *ret_score) {
  const struct cv_coins coins = {
      .path = cv_adversary_path(self, arm), .first = t, .count = count, .low = low_of(self, arm), .width = 2 * E};
  cv_coins_fill(&coins, ret_score);
}

const struct cv_adversary_class cv_adversary_fully_oblivious = {
    .name = "fully-oblivious", .gain = cv_adversary_drawn, .fill = fill};
