/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of samples, compared with results computed by hand. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "common/base/err.h"
#include "common/base/rng.h"
#include "lab/judge/effect.h"
#include "lab/judge/share.h"
#include "lab/judge/statistic.h"
#include "tests/support/near.h"

static double at(const void *data, size_t i) {
  return ((const double *)data)[i];
}

static struct cv_lab_summary summary(enum cv_lab_statistic statistic, const double *value, size_t n) {
  return cv_lab_summary_of(statistic, at, value, n);
}

static void test_the_mean_and_its_error(void **state) {
  const double value[] = {1, 2, 3, 4, 10};
  struct cv_lab_summary found = summary(CV_LAB_MEAN, value, 5);
  assert_near(found.mean, 4, 1e-15);
  assert_near(found.se, sqrt(50. / 4 / 5), 1e-15);
  assert_near(found.low, 4 - sqrt(2.5), 1e-15);
  assert_near(found.high, 4 + sqrt(2.5), 1e-15);
  assert_int_equal(found.n, 5);
}

static void test_what_is_missing_does_not_count(void **state) {
  const double value[] = {(double)NAN, 1, (double)NAN, 3, (double)NAN};
  struct cv_lab_summary found = summary(CV_LAB_MEAN, value, 5);
  assert_near(found.mean, 2, 0);
  assert_near(found.se, 1, 1e-15);
  assert_int_equal(found.n, 2);
  for (enum cv_lab_statistic statistic = CV_LAB_MEAN; statistic <= CV_LAB_MEDIAN; statistic++) {
    found = summary(statistic, value, 1);
    assert_true(isnan(found.mean) && isnan(found.se) && found.n == 0);
    found = summary(statistic, value, 2);
    assert_true(found.mean == 1 && found.n == 1);
    assert_true(isnan(found.se) && isnan(found.low) && isnan(found.high));
  }
}

static void test_numbers_that_plain_sums_lose(void **state) {
  const double value[] = {1, 1e100, 1, -1e100};
  assert_near(summary(CV_LAB_MEAN, value, 4).mean, .5, 0);
}

/* P(Bin(n, 1/2) >= k): of 5, .0313 for all; of 16, .0106 for 13 and .0384 for 12; of 200, .0200 for 115, .0284 for
 * 114. */
static void test_heads_of_a_fair_coin(void **state) {
  static const struct {
    uint64_t n, least;
  } known[] = {{0, 1}, {1, 2}, {5, 6}, {6, 6}, {16, 13}, {200, 115}, {1000, 533}};
  for (size_t i = 0; i < CV_COUNT(known); i++) {
    assert_int_equal(cv_lab_heads_least(known[i].n, .5, 0.02275), known[i].least);
  }
  assert_int_equal(cv_lab_heads_least(16, .5, 0.02275 / 3), 14);
}

/* P(Bin(36, .9) = 36) is .0225, P(Bin(35, .9) = 35) .0250; P(Bin(100, .9) >= 96) is .0237, of 97 .0078; P(Bin(50, .1)
 * >= 10) is .0245, of 11 .0094. */
static void test_heads_of_a_biased_coin(void **state) {
  static const struct {
    uint64_t n;
    double p;
    uint64_t least;
  } known[] = {{35, .9, 36}, {36, .9, 36}, {100, .9, 97}, {50, .1, 11}};
  for (size_t i = 0; i < CV_COUNT(known); i++) {
    assert_int_equal(cv_lab_heads_least(known[i].n, known[i].p, 0.02275), known[i].least);
  }
}

static void test_quantiles_of_unsorted_numbers(void **state) {
  const double value[] = {3, (double)NAN, -2, 1e300, 0, -1e-300, 4};
  const double sorted[] = {-2, -1e-300, 0, 3, 4, 1e300};
  for (double q = 0; q <= 1; q += .0625) {
    assert_near(cv_lab_quantile_of(at, value, 7, q), cv_lab_quantile(sorted, 6, q), 0);
  }
  assert_true(isnan(cv_lab_quantile_of(at, value + 1, 1, .5)));
}

static void test_the_median_and_its_interval(void **state) {
  const double value[] = {1e9, 5, 1, 4, 2, 3, 6, 8, 7, 9}; /* of ten the third and the eighth: 1 - 2 * .0547 */
  struct cv_lab_summary found = summary(CV_LAB_MEDIAN, value, 10);
  assert_near(found.mean, 5.5, 0);
  assert_near(found.low, 3, 0);
  assert_near(found.high, 8, 0);
  assert_near(found.se, 2.5 / 1.6010087, 1e-6);
  assert_int_equal(found.n, 10);
  assert_true(isnan(summary(CV_LAB_MEDIAN, value, 2).low));
  assert_near(summary(CV_LAB_MEDIAN, value, 3).low, 1, 0);
  assert_near(summary(CV_LAB_MEDIAN, value, 3).high, 1e9, 0);
}

static void test_ginis_mean_difference(void **state) {
  const double value[] = {1, 2, 4, 8};
  assert_near(cv_lab_gini(value, 4), (1 + 3 + 7 + 2 + 6 + 4) / 6., 1e-15);
  assert_near(cv_lab_gini(value, 2), 1, 0);
  assert_true(isnan(cv_lab_gini(value, 1)) && isnan(cv_lab_gini(value, 0)));
}

static void test_a_median_of_few_is_one_of_single_numbers(void **state) {
  const double value[] = {9, 1, 100, 3, 4}; /* median 4; below 1, 3; above 9, 100 */
  struct cv_lab_summary found = summary(CV_LAB_MEDIAN_OF_MEANS, value, 5);
  assert_near(found.mean, 4, 0);
  assert_near(found.low, 4 - 2, 1e-13);
  assert_near(found.high, 4 + 91, 1e-13);
  assert_int_equal(found.n, 5);
}

static void test_a_median_of_many_is_one_of_twenty_four_means(void **state) {
  enum { N = 240 };
  double value[N];
  for (size_t i = 0; i < N; i++) { /* ten consecutive numbers have mean 0, 1, ..., 22, and the last ten a thousand */
    double mean = i / 10 == 23 ? 1000 : (double)(i / 10);
    value[i] = mean + (i % 2 == 0 ? .25 : -.25);
  }
  struct cv_lab_summary found = summary(CV_LAB_MEDIAN_OF_MEANS, value, N);
  assert_near(found.mean, 11.5, 1e-12);
  /* 0 .. 11: the mean difference of 12 consecutive whole numbers is 13/3 */
  assert_near(found.low, 11.5 - 13. / 3, 1e-12);
  /* 12 .. 22 and 1000: pairs of the eleven differ by 4 on average, the 11 others by 1000 - 17 */
  assert_near(found.high, 11.5 + (55 * 4 + 11 * 983) / 66., 1e-10);
  assert_near(cv_lab_freedom(CV_LAB_MEDIAN_OF_MEANS, N), 23, 0);
  assert_near(cv_lab_freedom(CV_LAB_MEDIAN_OF_MEANS, 47), 46, 0);
  assert_near(cv_lab_freedom(CV_LAB_MEAN, N), N - 1, 0);
}

static void test_every_number_is_in_one_group(void **state) {
  enum { N = 49 };
  double value[N + 3];
  for (size_t i = 0; i < N + 3; i++) {
    value[i] = i % 17 == 0 ? (double)NAN : 5;
  }
  struct cv_lab_summary found = summary(CV_LAB_MEDIAN_OF_MEANS, value, N + 3);
  assert_int_equal(found.n, N + 3 - 4);
  assert_near(found.mean, 5, 0);
  assert_near(found.se, 0, 0);
}

/* For normal variables the stated errors are the real ones; a median of 24 has a slightly smaller one. */
static void test_the_errors_are_as_large_as_they_say(void **state) {
  enum { RUNS = 2000, N = 480 };
  static double value[N];
  for (enum cv_lab_statistic statistic = CV_LAB_MEAN; statistic <= CV_LAB_MEDIAN; statistic++) {
    double truth = statistic == CV_LAB_ROOT_MEAN_SQUARE ? 1 : 0, square = 0, stated = 0;
    struct cv_rng_seeded seeded;
    cv_rng_seeded_init(&seeded, 7, CV_RNG_SCORE, statistic, 0);
    for (size_t run = 0; run < RUNS; run++) {
      for (size_t i = 0; i < N; i++) {
        value[i] = cv_rng_normal(&seeded.rng);
      }
      struct cv_lab_summary found = summary(statistic, value, N);
      square += pow(found.mean - truth, 2) / RUNS;
      stated += found.se / RUNS;
    }
    assert_near(stated / sqrt(square), 1, .1);
  }
}

static void test_root_mean_square(void **state) {
  const double value[] = {1, -1, 7, -7};
  struct cv_lab_summary found = summary(CV_LAB_ROOT_MEAN_SQUARE, value, 4);
  assert_near(found.mean, 5, 1e-15);
  assert_near(found.se, sqrt(4 * 24. * 24 / 3 / 4) / 10, 1e-14);
  const double nothing[] = {0, 0, 0};
  found = summary(CV_LAB_ROOT_MEAN_SQUARE, nothing, 3);
  assert_true(found.mean == 0 && found.se == 0);
}

static void test_quantiles(void **state) {
  double value[] = {40, 10, 30, 20};
  cv_lab_sort(value, 4);
  assert_near(cv_lab_quantile(value, 4, 0), 10, 0);
  assert_near(cv_lab_quantile(value, 4, .5), 25, 0);
  assert_near(cv_lab_quantile(value, 4, .25), 17.5, 1e-14);
  assert_near(cv_lab_quantile(value, 4, 1), 40, 0);
  assert_near(cv_lab_quantile(value, 1, .3), 10, 0);
}

/* At the limit, this few or fewer differ with probability `tail`: the definition, as a sum of binomial terms. */
static void test_the_limit_of_a_share(void **state) {
  for (uint64_t n = 1; n <= 640; n *= 8) {
    for (uint64_t differing = 0; differing < 10 && differing < n; differing++) {
      double share = cv_lab_share_most(differing, n, .02), sum = 0, term = pow(1 - share, (double)n);
      for (uint64_t i = 0; i <= differing; i++) {
        sum += term;
        term *= (double)(n - i) / (double)(i + 1) * share / (1 - share);
      }
      assert_near(sum, .02, 1e-9);
    }
  }
  assert_near(cv_lab_share_most(0, 600, .02275013194817921), 1 - pow(.02275013194817921, 1. / 600), 1e-12);
  assert_near(cv_lab_share_most(5, 5, .02), 1, 0);
  /* Every count that a report can meet has a limit: GSL's inverse gives up at some, and ends the program. */
  for (uint64_t n = 1; n < 4000; n += 1 + n / 40) {
    for (uint64_t differing = 0; differing <= n && differing < 10; differing++) {
      for (double tail = .0228; tail > 1e-5; tail /= 3) {
        double share = cv_lab_share_most(differing, n, tail);
        assert_true(share > (double)differing / (double)n - 1e-12 && share <= 1);
      }
    }
  }
}

static void test_the_largest_possible_effect(void **state) {
  struct cv_lab_pairs pairs = {.difference = {.mean = -.001, .se = .0005, .n = 600}, .freedom = 599, .range = 2};
  const double tail = .02275013194817921, student = .001 + 2.0036 * .0005; /* 2.0036: the quantile for 599 degrees */
  pairs.differing = 10;
  assert_near(cv_lab_effect_most(&pairs, tail), student, 1e-6);
  pairs.differing = 9;
  assert_near(cv_lab_effect_most(&pairs, tail), 2 * cv_lab_share_most(9, 600, tail), 1e-12);
  pairs.range = .01; /* Student's is the larger bound */
  assert_near(cv_lab_effect_most(&pairs, tail), student, 1e-6);
  pairs.range = 0;
  assert_true(isinf(cv_lab_effect_most(&pairs, tail)));
}

static void test_the_replicates_that_would_do(void **state) {
  struct cv_lab_pairs pairs = {.difference = {.mean = .5, .se = 1, .n = 100}, .freedom = 99, .differing = 100};
  const double tail = .02275013194817921;
  double n = cv_lab_effect_replicates(&pairs, tail, 1); /* so many that the standard error is .5/2.03 */
  assert_true(n > 1600 && n < 1660);
  assert_true(isinf(cv_lab_effect_replicates(&pairs, tail, .4)));
  pairs.differing = 5; /* and 10 of 200 would differ */
  assert_near(cv_lab_effect_replicates(&pairs, tail, 10), 200, 0);
  struct cv_lab_pairs equal = {.difference = {.n = 100}, .freedom = 99, .range = 1};
  n = cv_lab_effect_replicates(&equal, tail, .005);
  equal.difference.n = (uint64_t)ceil(n);
  assert_near(cv_lab_effect_most(&equal, tail), .005, .0001);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_mean_and_its_error),
      cmocka_unit_test(test_what_is_missing_does_not_count),
      cmocka_unit_test(test_numbers_that_plain_sums_lose),
      cmocka_unit_test(test_heads_of_a_fair_coin),
      cmocka_unit_test(test_heads_of_a_biased_coin),
      cmocka_unit_test(test_quantiles_of_unsorted_numbers),
      cmocka_unit_test(test_the_median_and_its_interval),
      cmocka_unit_test(test_ginis_mean_difference),
      cmocka_unit_test(test_a_median_of_few_is_one_of_single_numbers),
      cmocka_unit_test(test_a_median_of_many_is_one_of_twenty_four_means),
      cmocka_unit_test(test_every_number_is_in_one_group),
      cmocka_unit_test(test_the_errors_are_as_large_as_they_say),
      cmocka_unit_test(test_root_mean_square),
      cmocka_unit_test(test_quantiles),
      cmocka_unit_test(test_the_limit_of_a_share),
      cmocka_unit_test(test_the_largest_possible_effect),
      cmocka_unit_test(test_the_replicates_that_would_do),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
