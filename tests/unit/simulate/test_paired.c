/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a campaign and of the same one with another setting, compared in pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>

#include "common/base/rng.h"
#include "simulate/paired.h"
#include "tests/support/near.h"

static void test_the_middle_is_that_of_the_two_medians(void **state) {
  double own[9] = {1, 900, 3, 40, 5, 60, 7, 8, 0}, other[9] = {2, 2, 2, 14, 14, 0, 14, 99, 99};
  assert_near(cv_paired_ratio(own, other, 9).median, 2, 1e-12); /* 14 beside 7 */
  assert_near(cv_paired_change(own, other, 9).median, 7, 1e-12);
  double none[9] = {0}, some[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  assert_near(cv_paired_ratio(none, none, 9).high, 1, 0);
  assert_true(isinf(cv_paired_ratio(none, some, 9).low));
  assert_true(isnan(cv_paired_ratio(own, other, CV_PAIRED_LEAST - 1).low));
  assert_true(isnan(cv_paired_change(own, other, CV_PAIRED_LEAST - 1).median));
}

/* Heavy tails, as tokens of guessed items have; a part of them is the same in both runs of a pair. */
static void test_it_leaves_out_the_truth_seldom_and_sees_a_difference(void **state) {
  enum { TIMES = 300, N = 100 };
  struct cv_rng_seeded rng;
  uint32_t missed = 0, seen = 0, alone = 0;
  cv_rng_seeded_init(&rng, 11, 1, 0, 0);
  for (uint32_t t = 0; t < TIMES; t++) {
    double own[N], same[N], more[N];
    for (uint32_t i = 0; i < N; i++) {
      double common = tan(3 * (cv_rng_unit(&rng.rng) - .5));
      own[i] = exp(common + .2 * cv_rng_unit(&rng.rng));
      same[i] = exp(common + .2 * cv_rng_unit(&rng.rng));
      more[i] = 1.5 * exp(common + .2 * cv_rng_unit(&rng.rng));
    }
    struct cv_range none = cv_paired_ratio(own, same, N), some = cv_paired_ratio(own, more, N);
    missed += none.low > 1 || none.high < 1;
    seen += some.low > 1;
    double last = more[0]; /* the same runs, not in pairs */
    memmove(more, more + 1, (N - 1) * sizeof(*more));
    more[N - 1] = last;
    alone += cv_paired_ratio(own, more, N).low > 1;
  }
  assert_true(missed <= .01 * TIMES + 4 * sqrt(.01 * TIMES));
  assert_true(seen > .9 * TIMES);
  assert_true(alone < seen / 2);
}

static void test_many_pairs_narrow_it(void **state) {
  enum { N = 10000 };
  static double own[N], other[N];
  for (uint32_t i = 0; i < N; i++) {
    own[i] = 1 + (i * 7919) % N;
    other[i] = 1.01 * own[i];
  }
  struct cv_range few = cv_paired_ratio(own, other, 50), many = cv_paired_ratio(own, other, N);
  assert_true(many.low > 1 && many.high < 1.02 && many.high - many.low <= few.high - few.low);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_middle_is_that_of_the_two_medians),
      cmocka_unit_test(test_it_leaves_out_the_truth_seldom_and_sees_a_difference),
      cmocka_unit_test(test_many_pairs_narrow_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
