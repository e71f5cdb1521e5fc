/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binary mechanism of Chan, Shi and Song, "Private and Continual Release of Statistics" (2010/2011, Algorithm 2),
 * for up to T releases (the parameter `horizon`). The p-sum of level j covers 2^j items and carries one Lap(L),
 * L = floor(log2 T) + 1 the number of levels; the prefix sum at n uses one p-sum for each one bit of n.
 *
 * An item is in one p-sum of each level: L epsilon/L. Variance at n, in (D/epsilon)^2: 2 L^2 popcount(n).
 *
 * Node j is the noise of the p-sum of level j that the present prefix uses.
 */
#include "broker/mechanism/classes.h"

enum cv_err cv_binary_prepare(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why) {
  law->levels = cv_log2_floor(law->horizon) + 1;
  law->nodes = law->levels;
  return CV_OK;
}

static void draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  unsigned level = (unsigned)__builtin_ctzll(n);
  self->node[level] = cv_mechanism_laplace(self, self->law.levels, rng);
  cv_mechanism_noise_forget(self->node, level);
}

static bool is_live(const struct cv_mechanism_law *law, uint64_t n, uint32_t node) {
  return (n >> node & 1) != 0;
}

static int64_t total(const struct cv_mechanism *self, uint64_t n) {
  return cv_mechanism_noise_over(self->node, n);
}

static void noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret) {
  ret->groups = 1;
  ret->group[0] = (struct cv_noise_group){.scale = law->levels, .count = (uint32_t)__builtin_popcountll(n)};
}

/* Item 1 is in one p-sum of each complete level. */
uint64_t cv_binary_spent_micro(const struct cv_mechanism_law *law, uint64_t n) {
  return cv_mechanism_part_micro(law, cv_log2_floor(n) + 1, law->levels);
}

static const struct cv_param_rule rules[] = {CV_HORIZON_RULE};

const struct cv_mechanism_class cv_mechanism_binary = {
    .traits = &cv_traits_binary,
    .guarantee = CV_GUARANTEE_HORIZON,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .prepare = cv_binary_prepare,
    .draw = draw,
    .is_live = is_live,
    .total = total,
    .noise = noise,
    .spent_micro = cv_binary_spent_micro,
};
