/* SPDX-License-Identifier: Apache-2.0 */
#include "common/prio/poly.h"

#include "common/prio/field.h"

/*
 * A polynomial with values a at r and b at -r is, modulo X^2 - r^2, the line (a + b)/2 + (a - b)/2 X/r. So each round
 * halves the number of points: the values that are left belong to the points r^2, and to X^2. The halves add up to 1/n.
 */
uint64_t cv_poly_eval(uint64_t *value, size_t n, const uint64_t *inverse_root, size_t stride, uint64_t x) {
  for (size_t half = n / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; i++) {
      uint64_t a = value[i], b = value[i + half];
      uint64_t slope = cv_field_mul(x, inverse_root[i * stride]);
      value[i] = cv_field_add(cv_field_add(a, b), cv_field_mul(cv_field_sub(a, b), slope));
    }
    x = cv_field_mul(x, x);
    stride *= 2;
  }
  return value[0];
}

/* The coefficient of X^(n-1), which is the sum of value[i] w^i over n, is zero; and w^(i + n/2) is -w^i. */
uint64_t cv_poly_last(const uint64_t *value, size_t n, const uint64_t *inverse_root) {
  size_t half = n / 2;
  uint64_t last = value[half - 1];
  for (size_t i = 0; i + 1 < half; i++) {
    uint64_t difference = cv_field_sub(value[i], value[i + half]);
    last = cv_field_add(last, cv_field_mul(difference, inverse_root[half - 1 - i]));
  }
  return last;
}

/* w^k for the root w of order 2 n, whose inverse powers are given; k < n. */
static uint64_t root(const uint64_t *inverse_root, size_t n, size_t k) {
  return k == 0 ? 1 : cv_field_neg(inverse_root[n - k]);
}

/* Values become coefficients, n times each, in the order of their reversed index bits. */
static void interpolate(uint64_t *value, size_t n, const uint64_t *inverse_root) {
  for (size_t half = n / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < n; i = (i + 1 + half) & ~half) {
      uint64_t a = value[i], b = value[i + half], twiddle = inverse_root[(i & (half - 1)) * (n / half)];
      value[i] = cv_field_add(a, b);
      value[i + half] = cv_field_mul(cv_field_sub(a, b), twiddle);
    }
  }
}

/* The way back. */
static void evaluate_all(uint64_t *value, size_t n, const uint64_t *inverse_root) {
  for (size_t half = 1; half < n; half *= 2) {
    for (size_t i = 0; i < n; i = (i + 1 + half) & ~half) {
      uint64_t a = value[i], b = cv_field_mul(value[i + half], root(inverse_root, n, (i & (half - 1)) * (n / half)));
      value[i] = cv_field_add(a, b);
      value[i + half] = cv_field_sub(a, b);
    }
  }
}

/* With coefficient k times w^k, the values at all points are those at w times these points. */
void cv_poly_between(uint64_t *value, size_t n, const uint64_t *inverse_root, uint64_t share_of_one) {
  interpolate(value, n, inverse_root);
  for (size_t i = 0, k = 0; i < n; i++) {
    value[i] = cv_field_mul(value[i], cv_field_mul(root(inverse_root, n, k), share_of_one));
    size_t bit = n / 2;
    while ((k & bit) != 0) {
      k ^= bit;
      bit /= 2;
    }
    k |= bit;
  }
  evaluate_all(value, n, inverse_root);
}
