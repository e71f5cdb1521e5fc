/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/grid.h"
#include "tests/support/near.h"
#include "worker/quality/quality.h"

/* Arm a gets the `count[a]` values 10000 a, 10000 a + 1, ... */
static struct cv_rows make_rows(const uint64_t *count, uint32_t arms) {
  struct cv_rows rows = {.arms = arms, .start = calloc(arms + 1, sizeof(*rows.start))};
  assert_non_null(rows.start);
  for (uint32_t arm = 0; arm < arms; arm++) {
    rows.start[arm + 1] = rows.start[arm] + count[arm];
  }
  rows.value = calloc(rows.start[arms] + 1, sizeof(*rows.value));
  assert_non_null(rows.value);
  for (uint32_t arm = 0; arm < arms; arm++) {
    for (uint64_t i = 0; i < count[arm]; i++) {
      rows.value[rows.start[arm] + i] = (uint32_t)(10000 * arm + i);
    }
  }
  return rows;
}

static struct cv_quality *make(const uint64_t *count, uint32_t arms, bool replacement, uint64_t seed) {
  struct cv_rows rows = make_rows(count, arms);
  struct cv_quality *quality = NULL;
  assert_int_equal(cv_quality_new_rows(&rows, replacement, seed, &quality, NULL), CV_OK);
  assert_null(rows.value);
  return quality;
}

static void test_permutation_is_a_bijection(void **state) {
  const uint64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 63, 64, 65, 100, 255, 256, 257, 1000, 4097, 70001};
  for (size_t s = 0; s < CV_COUNT(sizes); s++) {
    for (uint64_t key = 0; key < 3; key++) {
      uint8_t *seen = calloc(sizes[s], 1);
      assert_non_null(seen);
      for (uint64_t i = 0; i < sizes[s]; i++) {
        uint64_t at = cv_permute(key, sizes[s], i);
        assert_true(at < sizes[s]);
        assert_int_equal(seen[at]++, 0);
      }
      free(seen);
    }
  }
  assert_true(cv_permute(1, UINT64_C(1) << 62, 12345) < UINT64_C(1) << 62);
}

/* Each of 8 indices should land on each of 8 places for about an eighth of the keys. */
static void test_permutation_favours_no_place(void **state) {
  enum { N = 8, KEYS = 16000 };
  int count[N][N] = {0};
  for (uint64_t key = 0; key < KEYS; key++) {
    for (uint64_t i = 0; i < N; i++) {
      count[i][cv_permute(cv_mix64(key), N, i)]++;
    }
  }
  double chi = 0, expected = (double)KEYS / N;
  for (int i = 0; i < N * N; i++) {
    int row = i / N;
    double off = count[row][i % N] - expected;
    chi += off * off / expected;
  }
  /* 49 degrees of freedom: passed by chance with probability 10^-4 */
  assert_true(chi < 93);
}

static void test_without_replacement_every_row_comes_once(void **state) {
  const uint64_t count[] = {1, 10, 3000};
  struct cv_quality *quality = make(count, 3, false, 5), *other = make(count, 3, false, 6);
  int moved = 0;
  for (uint32_t arm = 0; arm < 3; arm++) {
    uint8_t seen[3000] = {0};
    int64_t score = -1, elsewhere = -1;
    for (uint64_t place = 0; place < count[arm]; place++) {
      assert_int_equal(cv_quality_score(quality, arm, place, &score), CV_OK);
      assert_in_range(score, 10000 * arm, 10000 * arm + count[arm] - 1);
      assert_int_equal(seen[score - 10000 * arm]++, 0);
      assert_int_equal(cv_quality_score(other, arm, place, &elsewhere), CV_OK);
      moved += score != elsewhere;
    }
    score = -1;
    assert_int_equal(cv_quality_score(quality, arm, count[arm], &score), CV_ERR_LIMIT);
    assert_int_equal(cv_quality_score(quality, arm, UINT64_MAX, &score), CV_ERR_LIMIT);
    assert_int_equal(score, -1);
  }
  assert_true(moved > 2900);
  cv_quality_free(quality);
  cv_quality_free(other);
}

static void test_with_replacement_rows_are_uniform(void **state) {
  enum { DRAWS = 100000 };
  const uint64_t count[] = {2, 10};
  struct cv_quality *quality = make(count, 2, true, 5);
  int seen[10] = {0};
  for (uint64_t place = 0; place < DRAWS; place++) {
    int64_t score = -1, again = -1;
    assert_int_equal(cv_quality_score(quality, 1, place, &score), CV_OK);
    assert_int_equal(cv_quality_score(quality, 1, place, &again), CV_OK);
    assert_int_equal(score, again);
    assert_in_range(score, 10000, 10009);
    seen[score - 10000]++;
  }
  for (int i = 0; i < 10; i++) {
    assert_near(seen[i], DRAWS / 10.0, 5 * sqrt(DRAWS * 0.09));
  }
  cv_quality_free(quality);
}

static void test_truth_is_the_mean_of_the_rows(void **state) {
  const uint64_t count[] = {1, 3};
  struct cv_quality *quality = make(count, 2, true, 5);
  assert_true(cv_quality_truth(quality, 0) == 0);
  assert_true(cv_quality_truth(quality, 1) == 10001.0 / (double)CV_GRID);
  cv_quality_free(quality);
}

static void test_an_arm_without_rows_is_used_up_at_once(void **state) {
  const uint64_t count[] = {1, 0};
  struct cv_rows rows = make_rows(count, 2);
  struct cv_quality *quality = NULL;
  struct cv_why why = {0};
  assert_int_equal(cv_quality_new_rows(&rows, true, 1, &quality, &why), CV_ERR_INVALID);
  assert_null(quality);
  assert_null(rows.value);
  assert_string_equal(why.text, "item 2 has no rows");
  rows = make_rows(count, 2);
  assert_int_equal(cv_quality_new_rows(&rows, false, 1, &quality, &why), CV_OK);
  int64_t score;
  assert_int_equal(cv_quality_score(quality, 0, 0, &score), CV_OK);
  assert_int_equal(cv_quality_score(quality, 1, 0, &score), CV_ERR_LIMIT);
  cv_quality_free(quality);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_permutation_is_a_bijection),
      cmocka_unit_test(test_permutation_favours_no_place),
      cmocka_unit_test(test_without_replacement_every_row_comes_once),
      cmocka_unit_test(test_with_replacement_rows_are_uniform),
      cmocka_unit_test(test_truth_is_the_mean_of_the_rows),
      cmocka_unit_test(test_an_arm_without_rows_is_used_up_at_once),
  };
  return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
