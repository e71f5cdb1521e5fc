/* SPDX-License-Identifier: Apache-2.0 */
/* The divergence's inverse, and the laws of the gamma and beta draws. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdlib.h>

#include "common/base/err.h"
#include "tests/support/near.h"
#include "thirdparty/policy/beta.h"
#include "thirdparty/policy/kl.h"

static void the_divergence_by_hand(void **state) {
  assert_near(cv_kl(0.5, 0.5), 0, 1e-15);
  assert_near(cv_kl(0.5, 0.25), 0.5 * log(2) + 0.5 * log(2.0 / 3), 1e-15);
  assert_near(cv_kl(0, 0.25), log(4.0 / 3), 1e-15);
  assert_near(cv_kl(1, 0.25), log(4), 1e-15);
  assert_true(isinf(cv_kl(0.5, 0)));
  assert_true(isinf(cv_kl(0.5, 1)));
}

/* (q - p)^2/(2p(1-p)), up to a term of the third order, and to the rounding of logarithms of 1 + (q - p)/p. */
static void the_divergence_of_near_coins(void **state) {
  for (double away = 1e-5; away > 1e-10; away /= 10) {
    double p = 0.2, q = p + away, exact = (q - p) * (q - p) / (2 * p * (1 - p));
    assert_near(cv_kl(p, q) / exact, 1, 10 * away + 1e-15 / away);
    assert_near(cv_kl_private(p, q, 0.25) / exact, 1, 10 * away + 1e-15 / away);
  }
}

/* d(0, q) = -ln(1 - q), and d(1/2, q) = -ln(4 q (1-q))/2. */
static void bounds_where_there_is_a_formula(void **state) {
  for (double bound = 1e-12; bound < 100; bound *= 3) {
    assert_near(cv_kl_upper(0, bound), 1 - exp(-bound), 1e-15);
    assert_near(cv_kl_lower(1, bound), exp(-bound), 1e-15);
    double half = (1 + sqrt(-expm1(-2 * bound))) / 2;
    assert_near(cv_kl_upper(0.5, bound), half, 1e-12);
    assert_near(cv_kl_lower(0.5, bound), 1 - half, 1e-12);
  }
  assert_near(cv_kl_upper(1, 5), 1, 0);
  assert_near(cv_kl_lower(0, 5), 0, 0);
  assert_near(cv_kl_upper(0.3, 0), 0.3, 0);
  assert_near(cv_kl_lower(0.3, 0), 0.3, 1e-16);
}

/* The slow way: bisection. */
static double halved(double p, double bound) {
  double low = p, high = 1;
  for (int i = 0; i < 200; i++) {
    double q = (low + high) / 2;
    *(cv_kl(p, q) <= bound ? &low : &high) = q;
  }
  return low;
}

static void bounds_agree_with_halving(void **state) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 7, 1, 0, 0);
  for (int i = 0; i < 20000; i++) {
    double p = cv_rng_unit(&rng.rng), bound = exp(10 * cv_rng_unit(&rng.rng) - 7);
    if (i % 5 == 0) {
      p = i % 2 == 0 ? p * 1e-9 : 1 - p * 1e-9;
    }
    double q = cv_kl_upper(p, bound);
    assert_true(q >= p && q <= 1);
    assert_near(q, halved(p, bound), 1e-11);
    assert_near(cv_kl_lower(p, bound), 1 - halved(1 - p, bound), 1e-11);
  }
}

/* The definition: the supremum over |x| <= epsilon of x p - ln(1 - q + q e^x), on a grid. */
static double supremum(double p, double q, double epsilon) {
  enum { STEPS = 20000 };
  double best = 0;
  for (int i = -STEPS; i <= STEPS; i++) {
    double x = epsilon * i / STEPS;
    best = fmax(best, x * p - log1p(q * expm1(x)));
  }
  return best;
}

static void the_private_divergence_is_its_supremum(void **state) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 7, 2, 0, 0);
  for (int i = 0; i < 300; i++) {
    double p = 3 * cv_rng_unit(&rng.rng) - 1, q = cv_rng_unit(&rng.rng), epsilon = exp(7 * cv_rng_unit(&rng.rng) - 5);
    assert_near(cv_kl_private(p, q, epsilon), supremum(p, q, epsilon), 1e-6 * (1 + epsilon));
    assert_true(cv_kl_private(p, q, epsilon) >= supremum(p, q, epsilon) - 1e-12);
  }
}

static void the_private_divergence_at_its_edges(void **state) {
  assert_near(cv_kl_private(0.3, 0.3, 0.25), 0, 0);
  assert_near(cv_kl_private(1, 0, 0.25), 0.25, 1e-15);
  assert_near(cv_kl_private(0, 1, 0.25), 0.25, 1e-15);
  assert_near(cv_kl_private(-2, 0, 0.25), 0.5, 1e-15);
  assert_near(cv_kl_private(0.5, 0.25, (double)INFINITY), cv_kl(0.5, 0.25), 0);
  assert_near(cv_kl_private(0.5, 0.25, 800), cv_kl(0.5, 0.25), 0);
  assert_true(isinf(cv_kl_private(1.5, 0.25, (double)INFINITY)));
}

static int by_size(const void *a, const void *b) {
  const double *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

enum { DRAWS = 40000 };

/* Kolmogorov and Smirnov: the largest distance of the empirical law, times the root of the draws, passes 1.95 with
 * probability .001. */
static void assert_law(double *draw, double (*law)(double x, double a, double b), double a, double b) {
  double distance = 0;
  qsort(draw, DRAWS, sizeof(draw[0]), by_size);
  for (int i = 0; i < DRAWS; i++) {
    double at = law(draw[i], a, b);
    distance = fmax(distance, fmax(at - (double)i / DRAWS, (i + 1.0) / DRAWS - at));
  }
  if (distance * sqrt(DRAWS) > 1.95) {
    fail_msg("a = %g, b = %g: distance %g", a, b, distance * sqrt(DRAWS));
  }
}

/* Gamma(shape) for whole shapes: 1 - e^-x sum of x^j/j!. */
static double erlang(double x, double shape, double unused) {
  double sum = 0;
  for (int j = 0; j < (int)shape; j++) {
    sum += exp(j * log(x) - x - lgamma(j + 1));
  }
  return 1 - sum;
}

/* Beta(a, b) for whole a, b: at least a of a + b - 1 coins. */
static double coins(double x, double a, double b) {
  double n = a + b - 1, sum = 0;
  for (double j = a; j <= n; j++) {
    sum += exp(lgamma(n + 1) - lgamma(j + 1) - lgamma(n - j + 1) + j * log(x) + (n - j) * log1p(-x));
  }
  return sum;
}

static void draws_follow_their_laws(void **state) {
  static const double shapes[] = {1, 2, 7, 60};
  static const double pairs[][2] = {{1, 1}, {2, 1}, {1, 9}, {3, 5}, {40, 12}, {1, 200}};
  static double draw[DRAWS];
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 3, 1, 0, 0);
  for (size_t s = 0; s < CV_COUNT(shapes); s++) {
    for (int i = 0; i < DRAWS; i++) {
      draw[i] = cv_draw_gamma(&rng.rng, shapes[s]);
    }
    assert_law(draw, erlang, shapes[s], 0);
  }
  for (size_t s = 0; s < CV_COUNT(pairs); s++) {
    for (int i = 0; i < DRAWS; i++) {
      draw[i] = cv_draw_beta(&rng.rng, pairs[s][0], pairs[s][1]);
    }
    assert_law(draw, coins, pairs[s][0], pairs[s][1]);
  }
}

/* Quantiles of Beta(7.5, 2.5), which no whole numbers give: 5, 50 and 95 %. */
static void draws_of_parts_of_a_one_follow_theirs(void **state) {
  static const double at[] = {0.508364, 0.767121, 0.932689}, share[] = {0.05, 0.5, 0.95};
  struct cv_rng_seeded rng;
  int below[3] = {0};
  cv_rng_seeded_init(&rng, 4, 1, 0, 0);
  for (int i = 0; i < DRAWS; i++) {
    double x = cv_draw_beta(&rng.rng, 7.5, 2.5);
    for (int q = 0; q < 3; q++) {
      below[q] += x < at[q];
    }
  }
  for (int q = 0; q < 3; q++) {
    assert_near((double)below[q] / DRAWS, share[q], 3.3 * sqrt(share[q] * (1 - share[q]) / DRAWS));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_divergence_by_hand),
      cmocka_unit_test(the_divergence_of_near_coins),
      cmocka_unit_test(bounds_where_there_is_a_formula),
      cmocka_unit_test(bounds_agree_with_halving),
      cmocka_unit_test(the_private_divergence_is_its_supremum),
      cmocka_unit_test(the_private_divergence_at_its_edges),
      cmocka_unit_test(draws_follow_their_laws),
      cmocka_unit_test(draws_of_parts_of_a_one_follow_theirs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
