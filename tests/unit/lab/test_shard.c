/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lab/run/shard.h"

static void test_shards_are_disjoint_and_complete(void **state) {
  enum { PIECES = 97 };
  for (uint64_t of = 1; of <= 120; of++) {
    unsigned taken[PIECES] = {0};
    for (uint64_t index = 1; index <= of; index++) {
      const struct cv_lab_shard shard = {.index = index, .of = of};
      uint64_t count = cv_lab_shard_count(&shard, PIECES);
      assert_in_range(count, PIECES / of, PIECES / of + 1); /* fair, too */
      for (uint64_t i = 0; i < count; i++) {
        assert_true(cv_lab_shard_piece(&shard, i) < PIECES);
        taken[cv_lab_shard_piece(&shard, i)]++;
      }
      assert_true(cv_lab_shard_piece(&shard, count) >= PIECES);
    }
    for (size_t i = 0; i < PIECES; i++) {
      assert_int_equal(taken[i], 1);
    }
  }
}

static void test_a_shard_of_nothing_is_nothing(void **state) {
  const struct cv_lab_shard shard = {.index = 1, .of = 3};
  assert_int_equal(cv_lab_shard_count(&shard, 0), 0);
}

static void test_only_i_of_n_is_a_shard(void **state) {
  static const char *const wrong[] = {"",
                                      "/",
                                      "1",
                                      "1/",
                                      "/2",
                                      "0/2",
                                      "3/2",
                                      "1/0",
                                      "-1/2",
                                      "1/2 ",
                                      " 1/2",
                                      "1/2/3",
                                      "1.0/2",
                                      "a/b",
                                      "1/+2",
                                      "1/100001",
                                      "18446744073709551617/18446744073709551618",
                                      "1//2"};
  struct cv_lab_shard shard = {.index = 7, .of = 9};
  struct cv_why why;
  for (size_t i = 0; i < CV_COUNT(wrong); i++) {
    assert_int_equal(cv_lab_shard_parse(wrong[i], &shard, &why), CV_ERR_INVALID);
    assert_non_null(strstr(why.text, "expected I/N"));
    assert_true(shard.index == 7 && shard.of == 9);
  }
  assert_int_equal(cv_lab_shard_parse("12/100000", &shard, &why), CV_OK);
  assert_true(shard.index == 12 && shard.of == 100000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shards_are_disjoint_and_complete),
      cmocka_unit_test(test_a_shard_of_nothing_is_nothing),
      cmocka_unit_test(test_only_i_of_n_is_a_shard),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
