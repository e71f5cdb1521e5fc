/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "common/base/err.h"
#include "simulate/sampler/sampler.h"
#include "tests/support/near.h"
#include "tests/unit/sampler/law.h"

enum { DRAWS = 1000000, VALUES = 2048 };

static uint64_t drawn(struct cv_rng *rng, uint64_t n, double p) {
  struct cv_binomial law;
  cv_binomial_init(&law, n, p);
  return cv_binomial_draw(&law, rng);
}

static const struct {
  uint64_t n;
  double p;
} laws[] = {
    /* inversion, and both sides of the boundary to rejection */
    {1, 0.5},      {2, 0.1},         {7, 0.9},          {19, 0.5},       {1000, 0.00999}, {1000, 0.990005},
    {20, 0.5},     {1000, 0.010001}, {1001, 0.98999},   {21, 0.49},      {25, 0.4},       {30, 2.0 / 3},
    {40, 0.75},    {100, 0.1},       {100, 0.93 - .04}, {100, 0.5},      {200, 0.0625},   {1000, 0.3},
    {2000, 0.011}, {1000000, 1e-5},  {1000000, 3e-6},   {1000000, 4e-5}, {1500, 0.97},    {1 << 30, 0x1p-24},
};

static void test_draws_follow_the_exact_probabilities(void **state) {
  for (size_t i = 0; i < CV_COUNT(laws); i++) {
    uint64_t n = laws[i].n, count[VALUES] = {0};
    double p = laws[i].p, expected[VALUES];
    bool from_top = p > 0.5;
    for (int k = 0; k < VALUES; k++) {
      double value = from_top ? (double)n - k : k;
      expected[k] = k <= (double)n ? binomial_probability((double)n, p, value) : 0;
    }
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, 1, CV_RNG_SCORE, i, 0);
    for (int draw = 0; draw < DRAWS; draw++) {
      uint64_t k = drawn(&rng.rng, n, p);
      assert_true(k <= n);
      k = from_top ? n - k : k;
      assert_true(k < VALUES);
      count[k]++;
    }
    char what[64];
    (void)snprintf(what, sizeof(what), "binomial(%llu, %g)", (unsigned long long)n, p);
    assert_law(count, expected, VALUES, DRAWS, what);
  }
}

/* Mean, variance, third and fourth moment of the standardised sum: 0, 1, about 0 and about 3. */
static void check_moments(uint64_t n, double p) {
  struct cv_binomial law;
  struct cv_rng_seeded rng;
  cv_binomial_init(&law, n, p);
  cv_rng_seeded_init(&rng, 2, CV_RNG_SCORE, n, (uint64_t)(p * 1e6));
  double q = 1 - p, sd = sqrt((double)n * p * q), sum[5] = {0};
  for (int i = 0; i < DRAWS; i++) {
    double z = ((double)cv_binomial_draw(&law, &rng.rng) - (double)n * p) / sd, power = 1;
    for (int m = 1; m <= 4; m++) {
      power *= z;
      sum[m] += power / DRAWS;
    }
  }
  double skew = (q - p) / sd, kurtosis = 3 + (1 - 6 * p * q) / (sd * sd);
  assert_near(sum[1], 0, 5 * sqrt(1.0 / DRAWS));
  assert_near(sum[2], 1, 5 * sqrt((kurtosis - 1) / DRAWS));
  assert_near(sum[3], skew, 5 * sqrt(15.0 / DRAWS) + 6 * fabs(skew) / sqrt(DRAWS));
  assert_near(sum[4], kurtosis, 5 * sqrt(96.0 / DRAWS) + 20 / sqrt(DRAWS) * skew * skew);
}

static void test_large_sums_have_their_moments(void **state) {
  const uint64_t n[] = {6000, 600000, UINT64_C(1) << 30, UINT64_C(1) << 40};
  const double p[] = {0.5, 0.3, 0.01, 0.998};
  for (size_t i = 0; i < CV_COUNT(n); i++) {
    for (size_t j = 0; j < CV_COUNT(p); j++) {
      check_moments(n[i], p[j]);
    }
  }
}

/* Half of the distribution function's cells: the body of a law too wide for single values, against the normal with
 * Edgeworth's first terms, which at n = 2^40 are below 10^-6. */
static void test_the_widest_law_has_the_normal_shape(void **state) {
  enum { CELLS = 64 };
  const double n = 0x1p40, p = 0.37, sd = sqrt(n * p * (1 - p));
  uint64_t count[CELLS] = {0};
  double expected[CELLS];
  for (int i = 0; i < CELLS; i++) {
    double low = (i - CELLS / 2) / 8.0, high = low + 0.125;
    expected[i] = (i == CELLS - 1 ? 1 : erfc(-high / M_SQRT2) / 2) - (i == 0 ? 0 : erfc(-low / M_SQRT2) / 2);
  }
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 3, CV_RNG_SCORE, 0, 0);
  for (int i = 0; i < DRAWS; i++) {
    double z = ((double)drawn(&rng.rng, UINT64_C(1) << 40, p) - n * p) / sd;
    int cell = (int)floor(z * 8) + CELLS / 2;
    count[cell < 0 ? 0 : cell >= CELLS ? CELLS - 1 : cell]++;
  }
  assert_law(count, expected, CELLS, DRAWS, "binomial(2^40, 0.37)");
}

/* The lowest bits of a draw of the widest law are as uniform as its highest. */
static void test_the_widest_law_leaves_no_gaps(void **state) {
  enum { CELLS = 64 };
  uint64_t count[CELLS] = {0};
  double expected[CELLS];
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 4, CV_RNG_SCORE, 0, 0);
  for (int i = 0; i < DRAWS; i++) {
    count[drawn(&rng.rng, UINT64_C(1) << 40, 0.3) % CELLS]++;
  }
  for (int i = 0; i < CELLS; i++) {
    expected[i] = 1.0 / CELLS;
  }
  assert_law(count, expected, CELLS, DRAWS, "the low bits of binomial(2^40, 0.3)");
}

static void test_sure_outcomes(void **state) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 5, CV_RNG_SCORE, 0, 0);
  const uint64_t n[] = {0, 1, 19, 1000, UINT64_C(1) << 40};
  for (size_t i = 0; i < CV_COUNT(n); i++) {
    for (int draw = 0; draw < 1000; draw++) {
      assert_int_equal(drawn(&rng.rng, n[i], 0), 0);
      assert_int_equal(drawn(&rng.rng, n[i], 1), n[i]);
      assert_int_equal(drawn(&rng.rng, 0, 0.3), 0);
      assert_int_equal(drawn(&rng.rng, n[i], 0x1p-1074), 0);
    }
  }
}

static void test_a_prepared_law_draws_alike(void **state) {
  for (size_t i = 0; i < CV_COUNT(laws); i++) {
    struct cv_binomial law;
    struct cv_rng_seeded a, b;
    cv_rng_seeded_init(&a, 6, CV_RNG_SCORE, i, 0);
    cv_rng_seeded_init(&b, 6, CV_RNG_SCORE, i, 0);
    cv_binomial_init(&law, laws[i].n, laws[i].p);
    for (int draw = 0; draw < 1000; draw++) {
      assert_int_equal(cv_binomial_draw(&law, &a.rng), drawn(&b.rng, laws[i].n, laws[i].p));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_draws_follow_the_exact_probabilities),
      cmocka_unit_test(test_large_sums_have_their_moments),
      cmocka_unit_test(test_the_widest_law_has_the_normal_shape),
      cmocka_unit_test(test_the_widest_law_leaves_no_gaps),
      cmocka_unit_test(test_sure_outcomes),
      cmocka_unit_test(test_a_prepared_law_draws_alike),
  };
  return cmocka_run_group_tests_name("binomial", tests, NULL, NULL);
}
