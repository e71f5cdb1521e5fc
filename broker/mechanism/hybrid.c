/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hybrid mechanism of Chan, Shi and Song, "Private and Continual Release of Statistics" (2010/2011), without a
 * horizon. Half of epsilon goes to each part:
 *
 * - logarithmic part: at n = 2^m one fresh Lap(2) is added to the running noisy sum, so the prefix sum at a power of
 *   two carries m + 1 noises, one for each segment between powers of two;
 * - binary part: the items after N = 2^m, counted by v = n - N < N, go into p-sums. The p-sum of level j covers 2^j
 *   items, ends at a v whose lowest one bit is j, and carries one Lap(2 m). A prefix uses the p-sums of the one bits of
 *   v.
 *
 * An item is in one segment and in at most m p-sums: epsilon/2 + m epsilon/(2 m). Variance at n, in (D/epsilon)^2:
 * 8 (m + 1) + 8 m^2 popcount(n - 2^m).
 *
 * Node 0 is the sum of the segments' noises, node 1 + j the noise of the p-sum of level j.
 */
#include "broker/mechanism/classes.h"

static enum cv_err prepare(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why) {
  law->nodes = 1 + CV_LEVELS_MAX;
  return CV_OK;
}

static void draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  uint64_t v = cv_power_past(n);
  unsigned m = cv_log2_floor(n), level = v == 0 ? m : (unsigned)__builtin_ctzll(v);
  if (v == 0) {
    self->node[0] = cv_wrapping_add(self->node[0], cv_mechanism_laplace(self, 2, rng));
  } else {
    self->node[1 + level] = cv_mechanism_laplace(self, 2 * (uint64_t)m, rng);
  }
  cv_mechanism_noise_forget(self->node + 1, level);
}

static bool is_live(const struct cv_mechanism_law *law, uint64_t n, uint32_t node) {
  return node == 0 || (cv_power_past(n) >> (node - 1) & 1) != 0;
}

static int64_t total(const struct cv_mechanism *self, uint64_t n) {
  return cv_wrapping_add(self->node[0], cv_mechanism_noise_over(self->node + 1, cv_power_past(n)));
}

static void noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret) {
  unsigned m = cv_log2_floor(n);
  uint64_t v = cv_power_past(n);
  ret->groups = v == 0 ? 1 : 2;
  ret->group[0] = (struct cv_noise_group){.scale = 2, .count = m + 1};
  ret->group[1] = (struct cv_noise_group){.scale = 2.0 * m, .count = (uint32_t)__builtin_popcountll(v)};
}

/* Item 3 is in no second noise before n = 4. */
static uint64_t spent_micro(const struct cv_mechanism_law *law, uint64_t n) {
  return cv_mechanism_part_micro(law, n < 4 ? 1 : 2, 2);
}

const struct cv_mechanism_class cv_mechanism_hybrid = {
    .traits = &cv_traits_hybrid,
    .guarantee = CV_GUARANTEE_ALWAYS,
    .prepare = prepare,
    .draw = draw,
    .is_live = is_live,
    .total = total,
    .noise = noise,
    .spent_micro = spent_micro,
};
