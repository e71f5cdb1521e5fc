/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "common/base/err.h"
#include "worker/quality/truth.h"

struct instance {
  uint32_t arms;
  double alpha, mean[6];
  uint32_t classes, rank_class[6];
};

static const struct instance by_hand[] = {
    {1, 0.1, {0.4}, 1, {1}},
    {2, 0.1, {0.4, 0.9}, 2, {2, 1}},
    /* 0.65 is within 0.1 of 0.7 but 0.7 is in the class of 0.8: chains do not count */
    {4, 0.1, {0.8, 0.75, 0.65, 0.2}, 3, {1, 1, 2, 3}},
    /* exactly on the boundary is within, and 0.8 - 0.1 in doubles is above 0.7 */
    {3, 0.1, {0.8, 0.7, 0.3}, 2, {1, 1, 2}},
    {3, 0.25, {1, 0.75, 0.5}, 2, {1, 1, 2}},
    /* full ranking, with a tie */
    {4, 0, {0.1, 0.9, 0.1, 0.5}, 3, {3, 1, 3, 2}},
    {3, 0, {0.1, 0.9, 0.5}, 3, {3, 1, 2}},
    {3, 1, {0, 1, 0.5}, 1, {1, 1, 1}},
    /* the boundary of the second class is the close one: 0.6 - 0.1 = 0.5 against 0.48 */
    {4, 0.1, {1, 0.6, 0.48, 0.55}, 3, {1, 2, 3, 2}},
};

static void test_classes_by_hand(void **state) {
  for (size_t i = 0; i < CV_COUNT(by_hand); i++) {
    const struct instance *given = &by_hand[i];
    uint32_t rank_class[6] = {9, 9, 9, 9, 9, 9};
    assert_int_equal(cv_truth_classes(given->mean, given->arms, given->alpha, rank_class), given->classes);
    for (uint32_t arm = 0; arm < given->arms; arm++) {
      assert_int_equal(rank_class[arm], given->rank_class[arm]);
    }
  }
}

static void test_no_arms(void **state) {
  assert_int_equal(cv_truth_classes(NULL, 0, 0.1, NULL), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_classes_by_hand),
      cmocka_unit_test(test_no_arms),
  };
  return cmocka_run_group_tests_name("truth", tests, NULL, NULL);
}
