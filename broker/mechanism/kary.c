/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of k children with subtraction: Andersson, Pagh, Steiner and Torkamani, "Count on Your Elders: Laplace vs
 * Gaussian Noise" (2024). For up to T releases (the parameter `horizon`), k odd, h levels with T <= (k^h - 1)/2; every
 * node carries one Lap(h).
 *
 * n is written in balanced digits, n = sum of d_j k^j with |d_j| <= (k - 1)/2. Let p be the value of the digits above
 * j: if d_j > 0 the prefix adds the d_j nodes of level j that follow p, if d_j < 0 it subtracts the |d_j| nodes of
 * level j that end at p. So a node may hold items that are still to come; they cancel exactly, and the result is the
 * exact prefix plus or minus the nodes' noises. An item is in one node of each level: h epsilon/h. Variance at n, in
 * (D/epsilon)^2: 2 h^2 sum of the |d_j|.
 *
 * As n grows by one, a digit goes up by one or falls from (k - 1)/2 to its negative while the next one goes up. So the
 * nodes of a level start and stop being used one at a time, except that (k - 1)/2 nodes start at once when a digit
 * falls; no node is used again later. Node j (k - 1)/2 + i is the noise of the i-th node of level j, counted from p
 * outwards.
 *
 * Without a parameter `k`, the k with the smallest average variance over all n is used (13 for T = 1024).
 */
#include "broker/mechanism/classes.h"

enum { K_MAX = 99 };

/* Levels for T releases: the least h with (k^h - 1)/2 >= T. */
static uint32_t levels_for(uint64_t k, uint64_t releases) {
  uint32_t h = 0;
  for (uint64_t reach = 0; reach < releases; reach = reach * k + (k - 1) / 2) {
    h++;
  }
  return h;
}

/* Proportional to the average variance: h levels of average digit (k^2 - 1)/(4 k), times h^2. */
static double cost_of(uint64_t k, uint64_t releases) {
  double h = levels_for(k, releases), width = (double)k;
  return h * h * h * (width * width - 1) / width;
}

static uint32_t best_for(uint64_t releases) {
  uint32_t best = 3;
  for (uint32_t k = 5; k <= K_MAX; k += 2) {
    best = cost_of(k, releases) < cost_of(best, releases) ? k : best;
  }
  return best;
}

static enum cv_err prepare(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why) {
  law->arity = (uint32_t)cv_params_number(params, "k");
  if (law->arity == 0) {
    law->arity = best_for(law->horizon);
    CV_TRY(cv_params_set_number(params, "k", law->arity));
  }
  if (law->arity % 2 == 0) {
    return cv_fail(why, CV_ERR_INVALID, "k is %u; expected an odd number", law->arity);
  }
  law->levels = levels_for(law->arity, law->horizon);
  law->nodes = law->levels * ((law->arity - 1) / 2);
  return CV_OK;
}

/* Removes the lowest balanced digit from n and returns it. */
static int32_t take_digit(uint64_t *n, uint32_t k) {
  uint32_t low = (uint32_t)(*n % k);
  bool negative = low > (k - 1) / 2;
  *n = *n / k + negative;
  return negative ? (int32_t)low - (int32_t)k : (int32_t)low;
}

static uint32_t size_of(int32_t digit) {
  return (uint32_t)(digit < 0 ? -digit : digit);
}

/* Updates the lowest digits, as far as the carry goes. */
static void draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  const uint32_t k = self->law.arity, half = (k - 1) / 2;
  uint64_t left = n;
  for (uint32_t level = 0; level < self->law.levels; level++) {
    int64_t *node = &self->node[(size_t)level * half];
    int32_t digit = take_digit(&left, k);
    if (digit > 0) {
      node[digit - 1] = cv_mechanism_laplace(self, self->law.levels, rng);
    }
    if (digit != -(int32_t)half) {
      if (digit <= 0) {
        node[size_of(digit)] = 0;
      }
      return;
    }
    for (uint32_t i = 0; i < half; i++) {
      node[i] = cv_mechanism_laplace(self, self->law.levels, rng);
    }
  }
}

static bool is_live(const struct cv_mechanism_law *law, uint64_t n, uint32_t node) {
  const uint32_t half = (law->arity - 1) / 2;
  int32_t digit = 0;
  for (uint32_t level = 0; level <= node / half; level++) {
    digit = take_digit(&n, law->arity);
  }
  return node % half < size_of(digit);
}

static int64_t total(const struct cv_mechanism *self, uint64_t n) {
  const uint32_t half = (self->law.arity - 1) / 2;
  int64_t sum = 0;
  for (const int64_t *node = self->node; n != 0; node += half) {
    int32_t digit = take_digit(&n, self->law.arity);
    for (uint32_t i = 0; i < size_of(digit); i++) {
      sum = digit > 0 ? cv_wrapping_add(sum, node[i]) : cv_wrapping_subtract(sum, node[i]);
    }
  }
  return sum;
}

static void noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret) {
  uint32_t count = 0;
  while (n != 0) {
    count += size_of(take_digit(&n, law->arity));
  }
  ret->groups = 1;
  ret->group[0] = (struct cv_noise_group){.scale = law->levels, .count = count};
}

/* No item is in a node above the levels that n needs. */
static uint64_t spent_micro(const struct cv_mechanism_law *law, uint64_t n) {
  return cv_mechanism_part_micro(law, levels_for(law->arity, n), law->levels);
}

static const struct cv_param_rule rules[] = {
    CV_HORIZON_RULE,
    {.key = "k", .low = 3, .high = K_MAX, .whole = true, .fallback = 0},
};

const struct cv_mechanism_class cv_mechanism_kary = {
    .traits = &cv_traits_kary,
    .guarantee = CV_GUARANTEE_HORIZON,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .prepare = prepare,
    .draw = draw,
    .is_live = is_live,
    .total = total,
    .noise = noise,
    .spent_micro = spent_micro,
};
