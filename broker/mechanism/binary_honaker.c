/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of binary.c with every node re-estimated from its whole subtree: Honaker, "Efficient Use of Differentially
 * Private Binary Trees" (2015), estimation from below. The guarantee is that of `binary`, epsilon up to the horizon,
 * because the estimates are computed from the same noisy nodes (now all of them, leaves included) and nothing else.
 *
 * The best mix of a node's own noisy sum and of its children's estimates, whose variances are known, gives a node of
 * level j the variance 2 L^2 2^j/(2^(j+1) - 1): own weight 2^j/(2^(j+1) - 1), the rest to the children. Multiplied out,
 * a node of level l below it has weight 2^l/(2^(j+1) - 1). So the noise of the estimate is M/(2^(j+1) - 1) with
 *
 *   M = 2^j (own noise) + M of the left child + M of the right child,
 *
 * an exact integer. Each estimate is rounded to the nearest integer (there are no ties: the denominators are odd);
 * since the true sum is an integer, rounding sum plus noise is the sum plus the rounded noise. The prefix sum at n adds
 * up the estimates of the one bits of n.
 *
 * Nodes 2 j and 2 j + 1 are the low and the high half of M for the node of level j that the present prefix uses.
 */
#include <math.h>

#include "broker/mechanism/classes.h"

typedef __int128_t wide;

static enum cv_err prepare(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why) {
  CV_TRY(cv_binary_prepare(law, params, why));
  law->nodes = 2 * law->levels;
  return CV_OK;
}

/* |M| stays below 2^101; a damaged state may hold more, which wraps. */
static wide add(wide a, wide b) {
  return (wide)((__uint128_t)a + (__uint128_t)b);
}

static wide get(const struct cv_mechanism *self, unsigned level) {
  const int64_t *at = &self->node[2 * (size_t)level];
  return (wide)((__uint128_t)(uint64_t)at[1] << 64 | (uint64_t)at[0]);
}

static void put(struct cv_mechanism *self, unsigned level, wide value) {
  int64_t *at = &self->node[2 * (size_t)level];
  at[0] = (int64_t)(uint64_t)value;
  at[1] = (int64_t)(uint64_t)((__uint128_t)value >> 64);
}

/* Item n completes a leaf, and one node on every level up to that of the lowest one bit of n. */
static void draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  unsigned top = (unsigned)__builtin_ctzll(n);
  wide m = cv_mechanism_laplace(self, self->law.levels, rng);
  for (unsigned level = 1; level <= top; level++) {
    wide own = (wide)cv_mechanism_laplace(self, self->law.levels, rng) * (INT64_C(1) << level);
    m = add(m, add(own, get(self, level - 1)));
  }
  put(self, top, m);
  cv_mechanism_noise_forget(self->node, 2 * top);
}

static bool is_live(const struct cv_mechanism_law *law, uint64_t n, uint32_t node) {
  return (n >> node / 2 & 1) != 0;
}

/* m/(2^(level+1) - 1), rounded to the nearest integer. */
static int64_t estimate(wide m, unsigned level) {
  wide divisor = ((wide)2 << level) - 1;
  wide half = m < 0 ? -(divisor / 2) : divisor / 2;
  return (int64_t)(add(m, half) / divisor);
}

static int64_t total(const struct cv_mechanism *self, uint64_t n) {
  int64_t sum = 0;
  for (uint64_t left = n; left != 0; left &= left - 1) {
    unsigned level = (unsigned)__builtin_ctzll(left);
    sum = cv_wrapping_add(sum, estimate(get(self, level), level));
  }
  return sum;
}

/*
 * The exact noise has (level of the one bits of n) x (level below) Laplace scales, too many for a release. The release
 * states a noise with the same sum v of squared scales, so the same variance, and the same largest scale b: as many
 * Laplaces of scale b as fit into v, and one of the rest. Of all sums with this v and b it has the widest moment
 * generating function (-ln(1 - x) is convex in x = (lambda scale)^2), so every tail bound by moments that holds for it
 * holds for the exact noise.
 */
static void noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret) {
  double v = 0;
  for (uint64_t left = n; left != 0; left &= left - 1) {
    double power = (double)(left & -left);
    v += power / (2 * power - 1);
  }
  double power = (double)(n & -n);
  double b = power / (2 * power - 1); /* own weight of the smallest node, the largest of all weights */
  double count = floor(v / (b * b) + 1e-9);
  double rest = v - count * b * b;
  ret->groups = rest > 1e-9 ? 2 : 1;
  ret->group[0] = (struct cv_noise_group){.scale = law->levels * b, .count = (uint32_t)count};
  ret->group[1] = (struct cv_noise_group){.scale = law->levels * sqrt(fmax(rest, 0)), .count = 1};
}

static const struct cv_param_rule rules[] = {CV_HORIZON_RULE};

const struct cv_mechanism_class cv_mechanism_binary_honaker = {
    .traits = &cv_traits_binary_honaker,
    .guarantee = CV_GUARANTEE_HORIZON,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .prepare = prepare,
    .draw = draw,
    .is_live = is_live,
    .total = total,
    .noise = noise,
    .spent_micro = cv_binary_spent_micro,
};
