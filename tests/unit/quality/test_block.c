/* SPDX-License-Identifier: Apache-2.0 */
/* Gains of many rounds at once equal those of each round alone. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "worker/quality/adversary.h"
#include "worker/quality/coins.h"

enum { ARMS = 4, COUNT = 3000 };

static const uint64_t firsts[] = {1, 2, 199, 4095, 65536 - 700, (UINT64_C(1) << 62) + 5};
static const size_t counts[] = {0, 1, 2, 7, 8, 9, 201, COUNT};

static void check(const struct cv_adversary *self, uint32_t arm, uint64_t first, size_t count) {
  int32_t block[COUNT + 1];
  block[count] = 77; /* nothing is written past the end */
  cv_adversary_fill(self, arm, first, count, block);
  assert_int_equal(block[count], 77);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(block[i], cv_grid_from(cv_adversary_gain(self, arm, first + i, 0)));
  }
}

static void every_adversary_is_the_same_in_blocks(void **state) {
  for (size_t a = 0; cv_adversary_at(a) != NULL; a++) {
    for (uint32_t best = 0; best < ARMS; best += 3) {
      const struct cv_adversary self = {
          .class = cv_adversary_at(a), .arms = ARMS, .best = best, .rounds = 1 << 16, .seed = 9 + best};
      for (size_t i = 0; i < CV_COUNT(firsts) * CV_COUNT(counts) * ARMS; i++) {
        check(&self, (uint32_t)(i % ARMS), firsts[i / ARMS % CV_COUNT(firsts)], counts[i / ARMS / CV_COUNT(firsts)]);
      }
    }
  }
}

/* Probabilities for which the last bit of a uniform decides. */
static void coins_are_exact_to_the_last_bit(void **state) {
  const uint64_t path = cv_rng_branch(cv_rng_branch(cv_rng_root(5), 0, CV_RNG_SCORE), 1, 0);
  for (uint64_t place = 0; place < 64; place++) {
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, 5, CV_RNG_SCORE, 0, place);
    double u = cv_rng_unit(&rng.rng);
    for (int above = 0; above < 2; above++) {
      const struct cv_coins coins = {.path = path, .first = place, .count = 1, .low = above ? nextafter(u, 2) : u};
      int32_t score = -1;
      cv_coins_fill(&coins, &score);
      assert_int_equal(score, above ? CV_GRID : 0);
    }
  }
}

/* Alone: eight at a time with any instructions, and one place at a time. */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(coins_are_exact_to_the_last_bit),
      cmocka_unit_test(coins_need_no_wide_instructions),
      cmocka_unit_test(every_adversary_is_the_same_in_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
