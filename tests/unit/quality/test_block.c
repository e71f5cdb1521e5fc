/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of many places together are those of each place by itself. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdlib.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "worker/quality/coins.h"
#include "worker/quality/quality.h"

enum { ARMS = 4, COUNT = 3000 };

static const uint64_t firsts[] = {0, 1, 199, 4095, 65536 - 700, (UINT64_C(1) << 62) + 5};
static const size_t counts[] = {0, 1, 2, 7, 8, 9, 201, COUNT};

static int64_t one(const struct cv_quality *quality, uint32_t arm, uint64_t place) {
  int64_t score = -1;
  assert_int_equal(cv_quality_score(quality, arm, place, &score), CV_OK);
  return score;
}

static void check_places(const struct cv_quality *quality, uint64_t first, size_t count) {
  int32_t block[COUNT + 1], *all = calloc(ARMS * count + 1, sizeof(*all));
  assert_non_null(all);
  assert_int_equal(cv_quality_scores_of_all(quality, first, count, all), CV_OK);
  for (uint32_t arm = 0; arm < ARMS; arm++) {
    int64_t sum = 0, found = -1;
    block[count] = 77; /* nothing is written past the end */
    assert_int_equal(cv_quality_scores(quality, arm, first, count, block), CV_OK);
    assert_int_equal(block[count], 77);
    for (size_t i = 0; i < count; i++) {
      int64_t score = one(quality, arm, first + i);
      assert_int_equal(block[i], score);
      assert_int_equal(all[arm * count + i], score);
      sum += score;
    }
    assert_int_equal(cv_quality_sum(quality, arm, first, count, &found), CV_OK);
    assert_int_equal(found, sum);
  }
  free(all);
}

static void check(struct cv_quality *quality) {
  for (size_t i = 0; i < CV_COUNT(firsts); i++) {
    for (size_t j = 0; j < CV_COUNT(counts); j++) {
      check_places(quality, firsts[i], counts[j]);
    }
  }
  cv_quality_free(quality);
}

static void every_model_is_the_same_in_blocks(void **state) {
  const struct cv_quality_item item[ARMS] = {{0.3, 0.2}, {0, 0.3}, {1, 5}, {0x1p-40, 0.9}};
  for (size_t m = 0; cv_quality_model_at(m) != NULL; m++) {
    struct cv_quality *quality;
    assert_int_equal(cv_quality_new(cv_quality_model_at(m), item, ARMS, 5, &quality, NULL), CV_OK);
    check(quality);
  }
}

/* Means on which the last bit of a uniform decides. */
static void coins_are_exact_to_the_last_bit(void **state) {
  enum { PLACES = 64 };
  for (uint64_t place = 0; place < PLACES; place++) {
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, 5, CV_RNG_SCORE, 0, place);
    double u = cv_rng_unit(&rng.rng);
    const struct cv_quality_item item[] = {{u, 0}, {nextafter(u, 2), 0}};
    for (size_t i = 0; i < CV_COUNT(item); i++) {
      struct cv_quality *quality;
      int32_t score = -1;
      assert_int_equal(cv_quality_new(cv_quality_model_find("bernoulli"), &item[i], 1, 5, &quality, NULL), CV_OK);
      assert_int_equal(cv_quality_scores(quality, 0, place, 1, &score), CV_OK);
      assert_int_equal(score, i == 0 ? 0 : CV_GRID);
      assert_int_equal(one(quality, 0, place), score);
      cv_quality_free(quality);
    }
  }
}

/* By itself: eight abreast by whatever instructions, and one place at a time. */
static void coins_need_no_wide_instructions(void **state) {
  const double laws[][2] = {{0.3, 0}, {0, 0}, {1, 0}, {0x1p-53, 0}, {0.45, 0.1}, {0.5, 0.1}, {0, 1}};
  for (size_t i = 0; i < CV_COUNT(laws); i++) {
    const struct cv_coins coins = {
        .path = cv_mix64(i), .first = i * 1000, .count = COUNT - i, .low = laws[i][0], .width = laws[i][1]};
    int32_t wide[COUNT], plain[COUNT];
    cv_coins_fill(&coins, wide);
    cv_coins_fill_plain(&coins, plain);
    assert_memory_equal(wide, plain, coins.count * sizeof(*wide));
    for (size_t place = 0; place < coins.count; place++) {
      struct cv_rng_seeded rng;
      cv_rng_seeded_at(&rng, cv_rng_branch(coins.path, 2, coins.first + place));
      double p = coins.low + (coins.width > 0 ? coins.width * cv_rng_unit(&rng.rng) : 0);
      assert_int_equal(plain[place], cv_rng_unit(&rng.rng) < p ? CV_GRID : 0);
    }
  }
}

static void every_adversary_is_the_same_in_blocks(void **state) {
  for (size_t i = 0; cv_adversary_at(i) != NULL; i++) {
    for (uint32_t best = 0; best < ARMS; best += 3) {
      const struct cv_adversary self = {
          .class = cv_adversary_at(i), .arms = ARMS, .best = best, .rounds = 1 << 16, .seed = 9 + best};
      struct cv_quality *quality;
      assert_int_equal(cv_quality_new_adversary(&self, &quality, NULL), CV_OK);
      check(quality);
    }
  }
}

static struct cv_quality *rows_of(bool replacement) {
  struct cv_rows rows = {.arms = ARMS, .start = calloc(ARMS + 1, sizeof(*rows.start))};
  rows.value = calloc(ARMS * 50, sizeof(*rows.value));
  assert_true(rows.start != NULL && rows.value != NULL);
  for (uint32_t i = 0; i < ARMS * 50; i++) {
    rows.value[i] = i * 5000;
    rows.start[1 + i / 50] = i + 1;
  }
  struct cv_quality *quality;
  assert_int_equal(cv_quality_new_rows(&rows, replacement, 3, &quality, NULL), CV_OK);
  return quality;
}

static void rows_are_the_same_in_blocks_and_end_as_they_do(void **state) {
  check(rows_of(true));
  struct cv_quality *quality = rows_of(false);
  int32_t block[51] = {[0] = 77};
  int64_t sum = 77;
  check_places(quality, 0, 50);
  check_places(quality, 13, 37);
  check_places(quality, 50, 0);
  assert_int_equal(cv_quality_scores(quality, 1, 0, 51, block), CV_ERR_LIMIT);
  assert_int_equal(cv_quality_scores(quality, 1, 49, 2, block), CV_ERR_LIMIT);
  assert_int_equal(cv_quality_scores(quality, 1, 60, 1, block), CV_ERR_LIMIT);
  assert_int_equal(cv_quality_scores_of_all(quality, 49, 2, block), CV_ERR_LIMIT);
  assert_int_equal(cv_quality_sum(quality, 1, 0, 51, &sum), CV_ERR_LIMIT);
  assert_int_equal(block[0], 77);
  assert_int_equal(sum, 77);
  cv_quality_free(quality);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_model_is_the_same_in_blocks),
      cmocka_unit_test(coins_are_exact_to_the_last_bit),
      cmocka_unit_test(coins_need_no_wide_instructions),
      cmocka_unit_test(every_adversary_is_the_same_in_blocks),
      cmocka_unit_test(rows_are_the_same_in_blocks_and_end_as_they_do),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
