/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "common/base/rng.h"
#include "worker/quality/adversaries.h"

/* 9 log2 T, of a game of two rounds at least. */
static double depth(const struct cv_adversary *self) {
  return 9 * log2(self->rounds > 2 ? (double)self->rounds : 2);
}

/* Of one step of the walk; the stream of no arm. */
static double step_of(const struct cv_adversary *self, uint64_t t) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, self->seed, CV_RNG_SCORE, UINT64_MAX, t);
  return cv_rng_normal(&rng.rng) / depth(self);
}

/* The walk has as many steps to t as t has ones. */
static double gain(const struct cv_adversary *self, uint32_t arm, uint64_t t) {
  double walk = 0, gap = cbrt(self->arms / (double)self->rounds) / depth(self);
  for (; t > 0; t &= t - 1) {
    walk += step_of(self, t);
  }
  return 1 - fmin(1, fmax(0, walk + 0.5 - (arm == self->best ? gap : 0)));
}

const struct cv_adversary_class cv_adversary_switching = {.name = "switching", .costs_switches = true, .gain = gain};
