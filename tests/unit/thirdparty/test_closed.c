/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of closed campaigns: the set equals a list of them, in the memory of a few ranges. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "common/base/rng.h"
#include "thirdparty/closed.h"

enum { NUMBERS = 64 };

static void test_ranges_are_what_was_added(void **state) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    struct cv_closed closed = {0};
    struct cv_rng_seeded rng;
    bool added[NUMBERS] = {false};
    cv_rng_seeded_init(&rng, seed, 1, 1, 1);
    for (uint64_t i = 0; i < 10 + seed / 4; i++) {
      uint64_t number = cv_rng_below(&rng.rng, NUMBERS);
      added[number] = true;
      assert_int_equal(cv_closed_add(&closed, number), CV_OK);
    }
    size_t runs = 0;
    for (uint64_t number = 0; number < NUMBERS; number++) {
      assert_int_equal(cv_closed_has(&closed, number), added[number]);
      runs += added[number] && (number == 0 || !added[number - 1]);
    }
    assert_int_equal(closed.count, runs);
    cv_closed_fini(&closed);
  }
}

static void test_a_thousand_in_a_row_are_one_range(void **state) {
  struct cv_closed closed = {0};
  for (uint64_t number = 1000; number >= 1; number--) {
    assert_int_equal(cv_closed_add(&closed, number), CV_OK);
  }
  assert_int_equal(closed.count, 1);
  const uint64_t ends[] = {0, UINT64_MAX, UINT64_MAX - 1};
  for (size_t i = 0; i < CV_COUNT(ends); i++) {
    assert_false(cv_closed_has(&closed, ends[i]));
    assert_int_equal(cv_closed_add(&closed, ends[i]), CV_OK);
    assert_true(cv_closed_has(&closed, ends[i]));
  }
  assert_int_equal(closed.count, 2);
  cv_closed_fini(&closed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ranges_are_what_was_added),
      cmocka_unit_test(test_a_thousand_in_a_row_are_one_range),
  };
  return cmocka_run_group_tests_name("closed", tests, NULL, NULL);
}
