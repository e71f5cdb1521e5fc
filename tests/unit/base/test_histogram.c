/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/base/histogram.h"

static const double BOUNDS[] = {.5, 1, 2};

static void test_each_value_counts_up_to_every_bound_above_it(void **state) {
  struct cv_histogram histogram = {.bound = BOUNDS, .bounds = 3};
  const double values[] = {.25, .5, .75, 2, 2.25, 100};
  for (size_t i = 0; i < 6; i++) {
    cv_histogram_add(&histogram, values[i]);
  }
  assert_int_equal(cv_histogram_upto(&histogram, 0), 2); /* a value equal to a bound is not above it */
  assert_int_equal(cv_histogram_upto(&histogram, 1), 3);
  assert_int_equal(cv_histogram_upto(&histogram, 2), 4);
  assert_int_equal(cv_histogram_upto(&histogram, 3), 6);
  assert_true(histogram.sum == 105.75);
}

static void test_what_is_no_number_is_counted_above_all(void **state) {
  struct cv_histogram histogram = {.bound = BOUNDS, .bounds = 3};
  cv_histogram_add(&histogram, (double)NAN);
  assert_int_equal(cv_histogram_upto(&histogram, 2), 0);
  assert_int_equal(cv_histogram_upto(&histogram, 3), 1);
}

static void test_bounds_of_a_disk_ascend(void **state) {
  for (size_t i = 1; i < CV_HISTOGRAM_DISK_BOUNDS; i++) {
    assert_true(CV_HISTOGRAM_DISK_S[i - 1] < CV_HISTOGRAM_DISK_S[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_value_counts_up_to_every_bound_above_it),
      cmocka_unit_test(test_what_is_no_number_is_counted_above_all),
      cmocka_unit_test(test_bounds_of_a_disk_ascend),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
