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
 * Without a parameter `k`, the k with the smallest average variance over n = 1 .. T is used (13 for T = 1024). The
 * average is exact. The digit of level j is that of weight 1 of floor((n + (k^j - 1)/2)/k^j), so it stays the same for
 * k^j values of n in a row, and its size runs through 0, 1, .., (k - 1)/2, (k - 1)/2, .., 1 again and again. The sum
 * over all n up to T is a closed form for each level.
 */
#include "broker/mechanism/classes.h"

/* Levels for T releases: the least h with (k^h - 1)/2 >= T. */
static uint32_t levels_for(uint64_t k, uint64_t releases) {
  uint32_t h = 0;
  for (uint64_t reach = 0; reach < releases; reach = reach * k + (k - 1) / 2) {
    h++;
  }
  return h;
}

/* The sum of the sizes of the lowest digits of 0 .. end - 1. */
static uint64_t lowest_digits(uint64_t k, uint64_t end) {
  const uint64_t half = (k - 1) / 2, rest = end % k, up = rest <= half + 1 ? rest : half + 1, down = rest - up;
  return end / k * half * (half + 1) + up * (up - 1) / 2 + down * (2 * half + 1 - down) / 2;
}

/* Proportional to the average variance over 1 .. releases: the sum of the sizes of all digits, times h^2. */
static double cost_of(uint64_t k, uint64_t releases) {
  double h = levels_for(k, releases), digits = 0;
  uint64_t power = 1;
  for (uint32_t level = 0; level < (uint32_t)h; level++, power *= k) {
    uint64_t end = releases + (power - 1) / 2 + 1, whole = end / power;
    uint64_t next = lowest_digits(k, whole + 1) - lowest_digits(k, whole);
    digits += (double)power * (double)lowest_digits(k, whole) + (double)(end % power) * (double)next;
  }
  return h * h * digits;
}

static uint32_t best_for(uint64_t releases) {
  uint32_t best = 3;
  for (uint32_t k = 5; k <= CV_KARY_MAX; k += 2) {
    best = cost_of(k, releases) < cost_of(best, releases) ? k : best;
  }
  return best;
}

enum cv_err cv_kary_check(const struct cv_mechanism_law *law, struct cv_why *why) {
  return law->arity % 2 == 1 ? CV_OK : cv_fail(why, CV_ERR_INVALID, "k is %u; expected an odd number", law->arity);
}

static enum cv_err prepare(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why) {
  law->arity = (uint32_t)cv_params_number(params, "k");
  if (law->arity == 0) {
    law->arity = best_for(law->horizon);
    CV_TRY(cv_params_set_number(params, "k", law->arity));
  }
  CV_TRY(cv_kary_check(law, why));
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
bool cv_kary_draw(struct cv_mechanism *self, int64_t *node, struct cv_kary tree, struct cv_rng *rng) {
  const uint32_t k = self->law.arity, half = (k - 1) / 2;
  for (uint32_t level = 0; level < tree.levels; level++, node += half) {
    int32_t digit = take_digit(&tree.n, k);
    if (digit > 0) {
      node[digit - 1] = cv_mechanism_laplace(self, tree.scale, rng);
    }
    if (digit != -(int32_t)half) {
      if (digit <= 0) {
        node[size_of(digit)] = 0;
      }
      return false;
    }
    for (uint32_t i = 0; i < half; i++) {
      node[i] = cv_mechanism_laplace(self, tree.scale, rng);
    }
  }
  return true;
}

bool cv_kary_is_live(uint32_t k, struct cv_kary tree, uint32_t node) {
  const uint32_t half = (k - 1) / 2;
  int32_t digit = 0;
  for (uint32_t level = 0; level <= node / half; level++) {
    digit = take_digit(&tree.n, k);
  }
  return node / half < tree.levels && node % half < size_of(digit);
}

int64_t cv_kary_total(uint32_t k, struct cv_kary tree, const int64_t *node) {
  int64_t sum = 0;
  for (uint32_t level = 0; level < tree.levels; level++, node += (k - 1) / 2) {
    int32_t digit = take_digit(&tree.n, k);
    for (uint32_t i = 0; i < size_of(digit); i++) {
      sum = digit > 0 ? cv_wrapping_add(sum, node[i]) : cv_wrapping_subtract(sum, node[i]);
    }
  }
  return sum;
}

struct cv_noise_group cv_kary_noise(uint32_t k, struct cv_kary tree) {
  struct cv_noise_group group = {.scale = (double)tree.scale};
  for (uint32_t level = 0; level < tree.levels; level++) {
    group.count += size_of(take_digit(&tree.n, k));
  }
  return group;
}

static struct cv_kary tree_at(const struct cv_mechanism_law *law, uint64_t n) {
  return (struct cv_kary){.n = n, .levels = law->levels, .scale = law->levels};
}

/* The horizon ends before a carry leaves the highest level. */
static void draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  (void)cv_kary_draw(self, self->node, tree_at(&self->law, n), rng);
}

static bool is_live(const struct cv_mechanism_law *law, uint64_t n, uint32_t node) {
  return cv_kary_is_live(law->arity, tree_at(law, n), node);
}

static int64_t total(const struct cv_mechanism *self, uint64_t n) {
  return cv_kary_total(self->law.arity, tree_at(&self->law, n), self->node);
}

static void noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret) {
  ret->groups = 1;
  ret->group[0] = cv_kary_noise(law->arity, tree_at(law, n));
}

/* No item is in a node above the levels that n needs. */
static uint64_t spent_micro(const struct cv_mechanism_law *law, uint64_t n) {
  return cv_mechanism_part_micro(law, levels_for(law->arity, n), law->levels);
}

static const struct cv_param_rule rules[] = {
    CV_HORIZON_RULE,
    CV_KARY_RULE(0),
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
