/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/near.h"

static void a_stream_repeats(void **state) {
  struct cv_rng_seeded a, b;
  cv_rng_seeded_init(&a, 7, CV_RNG_SCORE, 3, 4);
  cv_rng_seeded_init(&b, 7, CV_RNG_SCORE, 3, 4);
  for (int i = 0; i < 1000; i++) {
    assert_true(cv_rng_u64(&a.rng) == cv_rng_u64(&b.rng));
  }
}

/* xoshiro256** from state 1, 2, 3, 4, from its authors' reference code. */
static void words_are_xoshiros(void **state) {
  static const uint64_t want[] = {11520u,
                                  0u,
                                  1509978240u,
                                  UINT64_C(1215971899390074240),
                                  UINT64_C(1216172134540287360),
                                  UINT64_C(607988272756665600)};
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, 0, 0, 0, 0);
  for (uint64_t i = 0; i < 4; i++) {
    seeded.state[i] = i + 1;
  }
  for (size_t i = 0; i < CV_COUNT(want); i++) {
    assert_true(cv_rng_u64(&seeded.rng) == want[i]);
  }
}

/* Stored runs depend on this: a name always gives the same stream, with either function. */
static void a_name_keeps_its_stream(void **state) {
  struct cv_rng_seeded whole, parts;
  cv_rng_seeded_init(&whole, 7, CV_RNG_SCORE, 3, 5);
  uint64_t at = cv_rng_branch(cv_rng_branch(cv_rng_branch(cv_rng_root(7), 0, CV_RNG_SCORE), 1, 3), 2, 5);
  cv_rng_seeded_at(&parts, at);
  assert_memory_equal(whole.state, parts.state, sizeof(whole.state));
  assert_true(cv_rng_u64(&whole.rng) == UINT64_C(0x93fe72c39e734ba4));
  assert_true(cv_rng_u64(&whole.rng) == UINT64_C(0x1799f10f31bfa8f6));
  assert_true(cv_rng_u64(&parts.rng) == UINT64_C(0x93fe72c39e734ba4));
}

static void every_part_of_the_name_makes_another_stream(void **state) {
  static const uint64_t name[][4] = {{7, 1, 2, 3}, {8, 1, 2, 3}, {7, 2, 2, 3}, {7, 1, 3, 3}, {7, 1, 2, 4},
                                     {7, 2, 1, 3}, {7, 1, 3, 2}, {1, 7, 2, 3}, {0, 0, 0, 0}, {0, 0, 0, 1}};
  uint64_t first[CV_COUNT(name)];
  for (size_t i = 0; i < CV_COUNT(name); i++) {
    struct cv_rng_seeded seeded;
    cv_rng_seeded_init(&seeded, name[i][0], name[i][1], name[i][2], name[i][3]);
    first[i] = cv_rng_u64(&seeded.rng);
    for (size_t j = 0; j < i; j++) {
      assert_true(first[i] != first[j]);
    }
  }
}

static void a_taken_word_is_wiped(void **state) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, 1, 2, 3, 4);
  (void)cv_rng_u64(&seeded.rng);
  assert_int_equal(seeded.rng.left, 3);
  assert_true(seeded.rng.word[3] == 0 && seeded.rng.word[2] != 0);
}

static void below_is_uniform(void **state) {
  static const uint64_t bounds[] = {2, 3, 7, 10, 100};
  /* Chi-square at .9999 for 1, 2, 6, 9 and 99 degrees of freedom. */
  static const double most[] = {15.2, 18.5, 27.9, 33.8, 161.4};
  enum { DRAWS = 200000 };
  for (size_t b = 0; b < CV_COUNT(bounds); b++) {
    struct cv_rng_seeded seeded;
    cv_rng_seeded_init(&seeded, 11, b, 0, 0);
    uint32_t seen[100] = {0};
    for (int i = 0; i < DRAWS; i++) {
      uint64_t x = cv_rng_below(&seeded.rng, bounds[b]);
      assert_true(x < bounds[b]);
      seen[x]++;
    }
    double expected = (double)DRAWS / (double)bounds[b], chi2 = 0;
    for (uint64_t x = 0; x < bounds[b]; x++) {
      chi2 += ((double)seen[x] - expected) * ((double)seen[x] - expected) / expected;
    }
    assert_true(chi2 < most[b]);
  }
}

static void below_reaches_its_ends(void **state) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, 12, 0, 0, 0);
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(cv_rng_below(&seeded.rng, 1), 0);
  }
  /* A bound of 3/4 of the range: folding the rest back would double the probability of the lowest third. */
  const uint64_t bound = UINT64_C(3) << 62;
  int low = 0;
  for (int i = 0; i < 30000; i++) {
    uint64_t x = cv_rng_below(&seeded.rng, bound);
    assert_true(x < bound);
    low += x < bound / 3;
  }
  assert_near(low / 30000.0, 1.0 / 3, 0.012);
}

static void unit_is_uniform(void **state) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, 13, 0, 0, 0);
  double sum = 0, squares = 0;
  for (int i = 0; i < 200000; i++) {
    double x = cv_rng_unit(&seeded.rng);
    assert_true(x >= 0 && x < 1);
    sum += x;
    squares += x * x;
  }
  assert_near(sum / 200000, 0.5, 0.003);
  assert_near(squares / 200000, 1.0 / 3, 0.003);
}

static void normal_is_standard(void **state) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, 14, 0, 0, 0);
  double sum = 0, squares = 0, fourths = 0;
  int within = 0;
  enum { DRAWS = 200000 };
  for (int i = 0; i < DRAWS; i++) {
    double x = cv_rng_normal(&seeded.rng);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    within += fabs(x) < 1;
  }
  assert_near(sum / DRAWS, 0, 0.01);
  assert_near(squares / DRAWS, 1, 0.015);
  assert_near(fourths / DRAWS, 3, 0.1);
  assert_near((double)within / DRAWS, 0.682689, 0.005);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stream_repeats),        cmocka_unit_test(words_are_xoshiros),
      cmocka_unit_test(a_name_keeps_its_stream), cmocka_unit_test(every_part_of_the_name_makes_another_stream),
      cmocka_unit_test(a_taken_word_is_wiped),   cmocka_unit_test(below_is_uniform),
      cmocka_unit_test(below_reaches_its_ends),  cmocka_unit_test(unit_is_uniform),
      cmocka_unit_test(normal_is_standard),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
