/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hybrid mechanism exactly as Chen, Yu, Li, Zou, Liang and Cheng print it (PPAR, 2022, Algorithms 2 to 4), by
 * value: at n = 2^m the whole exact sum gets a fresh Lap(2) twice, once to be kept (Algorithm 2, line 5) and once to be
 * released (line 10). Between powers of two the kept sum is combined with the p-sums of hybrid.c, of scale 2 log2 N
 * (Algorithm 4, line 1).
 *
 * It is NOT epsilon-differentially private: item 1 is in every one of those sums, which together spend M epsilon at
 * n = 2^M (6 epsilon at n = 64), without a bound. It exists so that the paper can be reproduced and its claim tested.
 * The parameter `horizon` does not affect the noise; it makes the cost finite, so that it can be charged.
 *
 * Node 0 is the kept noise, node 1 the one released at a power of two, node 2 + j that of the p-sum of level j.
 */
#include "broker/mechanism/classes.h"

static enum cv_err prepare(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why) {
  law->nodes = 2 + CV_LEVELS_MAX;
  return CV_OK;
}

static void draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  uint64_t v = cv_power_past(n);
  unsigned m = cv_log2_floor(n), level = v == 0 ? m : (unsigned)__builtin_ctzll(v);
  if (v == 0) {
    self->node[0] = cv_mechanism_laplace(self, 2, rng);
    self->node[1] = cv_mechanism_laplace(self, 2, rng);
  } else {
    self->node[1] = 0;
    self->node[2 + level] = cv_mechanism_laplace(self, 2 * (uint64_t)m, rng);
  }
  cv_mechanism_noise_forget(self->node + 2, level);
}

static bool is_live(const struct cv_mechanism_law *law, uint64_t n, uint32_t node) {
  uint64_t v = cv_power_past(n);
  return node == 0 || (node == 1 ? v == 0 : (v >> (node - 2) & 1) != 0);
}

static int64_t total(const struct cv_mechanism *self, uint64_t n) {
  uint64_t v = cv_power_past(n);
  return v == 0 ? self->node[1] : cv_wrapping_add(self->node[0], cv_mechanism_noise_over(self->node + 2, v));
}

static void noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret) {
  uint64_t v = cv_power_past(n);
  ret->groups = v == 0 ? 1 : 2;
  ret->group[0] = (struct cv_noise_group){.scale = 2, .count = 1};
  ret->group[1] = (struct cv_noise_group){.scale = 2.0 * cv_log2_floor(n), .count = (uint32_t)__builtin_popcountll(v)};
}

/* The noisy sums with item 1: m + 1 released ones, and each kept one from 2^1 on once a release has used it. */
static uint64_t spent_micro(const struct cv_mechanism_law *law, uint64_t n) {
  uint64_t m = cv_log2_floor(n);
  uint64_t kept = m == 0 ? 0 : m - 1 + (cv_power_past(n) > 0);
  return cv_mechanism_part_micro(law, m + 1 + kept, 2);
}

static const struct cv_param_rule rules[] = {CV_HORIZON_RULE};

const struct cv_mechanism_class cv_mechanism_hybrid_printed = {
    .traits = &cv_traits_hybrid_printed,
    .guarantee = "none: what it spends grows with the logarithm of the releases, m epsilon at 2^m of them",
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .prepare = prepare,
    .draw = draw,
    .is_live = is_live,
    .total = total,
    .noise = noise,
    .spent_micro = spent_micro,
};
