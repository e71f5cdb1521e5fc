/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "worker/quality/adversaries.h"

/* The constants of one game. */
struct walk {
  uint64_t path; /* random path of the steps, which no arm uses */
  double depth;  /* 9 log2 T, with T at least 2 */
  double gap;
};

static struct walk walk_of(const struct cv_adversary *self) {
  double depth = 9 * log2(self->rounds > 2 ? (double)self->rounds : 2);
  return (struct walk){.path = cv_adversary_path(self, UINT64_MAX),
                       .depth = depth,
                       .gap = cbrt(self->arms / (double)self->rounds) / depth};
}

static double step_of(const struct walk *walk, uint64_t t) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_at(&rng, cv_rng_branch(walk->path, 2, t));
  return cv_rng_normal(&rng.rng) / walk->depth;
}

static double gain_at(const struct walk *walk, double at, bool best) {
  return 1 - fmin(1, fmax(0, at + 0.5 - (best ? walk->gap : 0)));
}

/* W_t is the sum of one step per one bit of t. */
static double gain(const struct cv_adversary *self, uint32_t arm, uint64_t t) {
  const struct walk walk = walk_of(self);
  double at = 0;
  for (; t > 0; t &= t - 1) {
    at += step_of(&walk, t);
  }
  return gain_at(&walk, at, arm == self->best);
}

/* The index of the lowest one bit of t; t > 0. */
static unsigned lowest(uint64_t t) {
  return (unsigned)__builtin_ctzll(t);
}

/* Consecutive rounds share all steps but the last: step[b] is the step to t with its bits below b cleared. The sum adds
 * in the order of gain(), so that both round alike. */
static void fill(const struct cv_adversary *self, uint32_t arm, uint64_t t, size_t count, int32_t *ret_score) {
  const struct walk walk = walk_of(self);
  double step[64];
  for (uint64_t left = t; left > 0; left &= left - 1) {
    step[lowest(left)] = step_of(&walk, left);
  }
  for (size_t i = 0; i < count; i++, t++) {
    if (i > 0) {
      step[lowest(t)] = step_of(&walk, t);
    }
    double at = 0;
    for (uint64_t left = t; left > 0; left &= left - 1) {
      at += step[lowest(left)];
    }
    ret_score[i] = (int32_t)cv_grid_from(gain_at(&walk, at, arm == self->best));
  }
}

const struct cv_adversary_class cv_adversary_switching = {
    .name = "switching", .memory = 1, .gain = gain, .others_alike = true, .fill = fill};
