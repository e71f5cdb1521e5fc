/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "common/noise/dlaplace.h"
#include "tests/support/near.h"

enum { DRAWS = 1000000, CELLS_MAX = 64 };

/* The value that a chi-square of `df` degrees of freedom passes with probability 10^-4 (Wilson and Hilferty 1931). */
static double critical(int df) {
  double a = 2.0 / (9.0 * df);
  return df * pow(1 - a + 3.719 * sqrt(a), 3);
}

/* P(X >= x) for the discrete Laplace law of scale s. */
static double upper(double s, int64_t x) {
  double a = exp(-1 / s);
  return x > 0 ? exp(-(double)x / s) / (1 + a) : 1 - exp(-(double)(1 - x) / s) / (1 + a);
}

static double chi_square(const uint64_t *count, const double *p, int cells, double n) {
  double sum = 0;
  for (int i = 0; i < cells; i++) {
    double expected = n * p[i];
    assert_true(expected >= 10);
    sum += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
  }
  return sum;
}

/*
 * Draws against the law in cells of `step` values: cell i of 1 .. 2 half - 1 is [(i - half) step, (i - half + 1) step),
 * the outer two are the tails.
 */
static void check_law(uint64_t p, uint64_t q, int64_t step, int half, uint64_t seed) {
  struct cv_dlaplace law;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, seed, CV_RNG_NOISE, p, q);
  assert_int_equal(cv_dlaplace_init(&law, p, q), CV_OK);
  uint64_t count[CELLS_MAX] = {0};
  double expected[CELLS_MAX];
  int cells = 2 * half + 1;
  double s = (double)p / (double)q;
  for (int i = 0; i < cells; i++) {
    double from = i == 0 ? 1 : upper(s, (i - half) * step);
    double to = i == cells - 1 ? 0 : upper(s, (i - half + 1) * step);
    expected[i] = from - to;
  }
  for (int i = 0; i < DRAWS; i++) {
    int64_t x = cv_dlaplace_draw(&law, &rng.rng);
    int64_t cell = (x >= 0 ? x / step : -((-x + step - 1) / step)) + half;
    count[cell < 0 ? 0 : cell >= cells ? cells - 1 : cell]++;
  }
  double found = chi_square(count, expected, cells, DRAWS);
  if (found > critical(cells - 1)) {
    fail_msg("scale %llu/%llu: chi-square %.1f, at most %.1f expected", (unsigned long long)p, (unsigned long long)q,
             found, critical(cells - 1));
  }
}

static void test_small_scales_follow_the_law(void **state) {
  (void)state;
  check_law(1, 2, 1, 3, 1);
  check_law(1, 1, 1, 6, 2);
  check_law(3, 2, 1, 8, 3);
  check_law(7, 5, 1, 8, 4);
  check_law(10, 1, 1, 30, 5);
  check_law(1000, 300, 1, 20, 6);
}

static void test_grid_scales_follow_the_law(void **state) {
  (void)state;
  uint64_t p = 2 * (uint64_t)CV_GRID * (uint64_t)CV_MICRO;
  check_law(p, 250000, CV_GRID * 2, 30, 7);
  check_law(p, 300000, CV_GRID * 2, 20, 8);
  check_law(p * 6, 7, (int64_t)(p * 6 / 7 / 4), 30, 9);
  check_law(CV_DLAPLACE_P_END - 1, 1, (int64_t)(CV_DLAPLACE_P_END / 4), 30, 10);
}

/* The cells above are wide; the lowest bits must be as uniform as the highest. */
static void test_low_bits_are_uniform_at_large_scales(void **state) {
  (void)state;
  struct cv_dlaplace law;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 11, CV_RNG_NOISE, 0, 0);
  assert_int_equal(cv_dlaplace_init(&law, 2 * (uint64_t)(CV_GRID * CV_MICRO), 300000), CV_OK);
  uint64_t count[CELLS_MAX] = {0};
  double expected[CELLS_MAX];
  for (int i = 0; i < DRAWS; i++) {
    count[(uint64_t)cv_dlaplace_draw(&law, &rng.rng) % CELLS_MAX]++;
  }
  for (int i = 0; i < CELLS_MAX; i++) {
    expected[i] = 1.0 / CELLS_MAX;
  }
  assert_true(chi_square(count, expected, CELLS_MAX, DRAWS) <= critical(CELLS_MAX - 1));
}

static void test_draws_are_independent(void **state) {
  (void)state;
  struct cv_dlaplace law;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 12, CV_RNG_NOISE, 0, 0);
  assert_int_equal(cv_dlaplace_init(&law, 2, 1), CV_OK);
  /* (last, this) by sign: negative, zero, positive. */
  uint64_t count[9] = {0};
  double expected[9], part[3] = {1 - upper(2, 0), upper(2, 0) - upper(2, 1), upper(2, 1)};
  int last = 1;
  for (int i = 0; i <= DRAWS; i++) {
    int64_t x = cv_dlaplace_draw(&law, &rng.rng);
    int sign = x < 0 ? 0 : x == 0 ? 1 : 2;
    count[3 * last + sign] += i > 0;
    last = sign;
  }
  for (int i = 0; i < 9; i++) {
    expected[i] = part[i / 3] * part[i % 3];
  }
  assert_true(chi_square(count, expected, 9, DRAWS) <= critical(8));
}

static void test_law_is_symmetric(void **state) {
  (void)state;
  const uint64_t scale[][2] = {{1, 2}, {3, 2}, {10, 1}, {20971520, 3}};
  for (size_t i = 0; i < CV_COUNT(scale); i++) {
    struct cv_dlaplace law;
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, 13, CV_RNG_NOISE, i, 0);
    assert_int_equal(cv_dlaplace_init(&law, scale[i][0], scale[i][1]), CV_OK);
    long balance = 0, nonzero = 0;
    for (int k = 0; k < DRAWS; k++) {
      int64_t x = cv_dlaplace_draw(&law, &rng.rng);
      balance += (x > 0) - (x < 0);
      nonzero += x != 0;
    }
    assert_near((double)balance, 0, 4 * sqrt((double)nonzero));
  }
}

static void test_equal_streams_give_equal_draws(void **state) {
  (void)state;
  struct cv_dlaplace law;
  struct cv_rng_seeded a, b;
  cv_rng_seeded_init(&a, 14, CV_RNG_NOISE, 1, 2);
  cv_rng_seeded_init(&b, 14, CV_RNG_NOISE, 1, 2);
  assert_int_equal(cv_dlaplace_init(&law, 20, 3), CV_OK);
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(cv_dlaplace_draw(&law, &a.rng), cv_dlaplace_draw(&law, &b.rng));
  }
}

static void test_scales_are_reduced_and_refused(void **state) {
  (void)state;
  struct cv_dlaplace law = {.p = 77};
  assert_int_equal(cv_dlaplace_init(&law, 0, 1), CV_ERR_INVALID);
  assert_int_equal(cv_dlaplace_init(&law, 1, 0), CV_ERR_INVALID);
  assert_int_equal(cv_dlaplace_init(&law, CV_DLAPLACE_P_END, 1), CV_ERR_LIMIT);
  assert_int_equal(cv_dlaplace_init(&law, CV_DLAPLACE_P_END, 3), CV_ERR_LIMIT);
  assert_int_equal(cv_dlaplace_init(&law, UINT64_MAX, 2), CV_ERR_LIMIT);
  assert_int_equal(law.p, 77);
  assert_int_equal(cv_dlaplace_init(&law, CV_DLAPLACE_P_END * 6, 12), CV_OK);
  assert_int_equal(law.p, CV_DLAPLACE_P_END / 2);
  assert_int_equal(law.q, 1);
  assert_int_equal(cv_dlaplace_init(&law, UINT64_C(1) << 63, UINT64_C(3) << 62), CV_OK);
  assert_int_equal(law.p, 2);
  assert_int_equal(law.q, 3);
}

static void test_bernoulli_exp_has_its_probability(void **state) {
  (void)state;
  const uint64_t rate[][2] = {{1, 1000},
                              {1, 3},
                              {1, 1},
                              {5, 3},
                              {2, 1},
                              {7, 2},
                              {693147, 1000000},
                              {UINT64_MAX - 1, UINT64_MAX},
                              {UINT64_MAX, UINT64_C(1) << 62}};
  for (size_t i = 0; i < CV_COUNT(rate); i++) {
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, 15, CV_RNG_PRIVATIZER, i, 0);
    double p = exp(-(double)rate[i][0] / (double)rate[i][1]);
    long found = 0;
    for (int k = 0; k < DRAWS; k++) {
      found += cv_bernoulli_exp(&rng.rng, rate[i][0], rate[i][1]);
    }
    assert_near((double)found / DRAWS, p, 4 * sqrt(p * (1 - p) / DRAWS));
  }
}

static void test_bernoulli_exp_of_the_ends(void **state) {
  (void)state;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 16, CV_RNG_PRIVATIZER, 0, 0);
  for (int i = 0; i < 10000; i++) {
    assert_true(cv_bernoulli_exp(&rng.rng, 0, 1));
    assert_true(cv_bernoulli_exp(&rng.rng, 0, UINT64_MAX));
    assert_false(cv_bernoulli_exp(&rng.rng, UINT64_MAX, 1));
  }
}

/* A source that gives chosen words, for paths that chance would hardly reach. */
struct scripted {
  struct cv_rng rng;
  uint64_t word[4];
  size_t next, words;
  uint64_t one;
};

static void refill(struct cv_rng *rng) {
  struct scripted *scripted = (struct scripted *)rng;
  assert_true(scripted->next < scripted->words);
  scripted->one = scripted->word[scripted->next++];
  rng->word = &scripted->one;
  rng->left = 1;
}

static bool bernoulli_on(uint64_t p, uint64_t q, uint64_t first, uint64_t second, uint64_t third) {
  struct scripted scripted = {.rng = {.refill = refill}, .word = {first, second, third}, .words = 3};
  return cv_bernoulli_exp(&scripted.rng, p, q);
}

/* 1/3 = 0.5555...: as long as the random digits are 5555 the comparison is undecided. Then the first trial fails (k
 * = 1, true) or it succeeds and the second, against ffff, fails (k = 2, false). */
static void test_an_undecided_comparison_reads_on(void **state) {
  (void)state;
  assert_true(bernoulli_on(1, 3, 0xffff555655555555, 0, 0));
  assert_false(bernoulli_on(1, 3, 0xffff555455555555, 0, 0));
  assert_true(bernoulli_on(1, 3, 0x5555555555555555, 0x5556, 0));
  assert_false(bernoulli_on(1, 3, 0x5555555555555555, 0xffff5554, 0));
}

/* exp(-1): 16 bits of 1 mean that six trials in a row succeeded; from the seventh on each takes a word of its own. The
 * rest, exp(-0), takes 16 more bits. */
static void test_a_long_run_goes_on_past_the_table(void **state) {
  (void)state;
  assert_true(bernoulli_on(1, 1, 0x0001, UINT64_MAX, 0));
  assert_false(bernoulli_on(1, 1, 0x0001, 7, UINT64_MAX));
}

/*
 * All 2^16 first digits: 16 are discarded, and each of 720 values has 91 of the others. Of those 240 end at the third
 * trial, 24 at the fifth and 1 goes past the sixth, here to fail at the seventh: all true. A discarded one reads on
 * into ffff, which is false.
 */
static void test_every_digit_of_the_table_counts_once(void **state) {
  (void)state;
  int found = 0;
  for (uint64_t digits = 0; digits <= 0xffff; digits++) {
    found += bernoulli_on(1, 1, 0xffff0000 | digits, UINT64_MAX, 0);
  }
  assert_int_equal(found, (240 + 24 + 1) * 91);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_scales_follow_the_law),
      cmocka_unit_test(test_grid_scales_follow_the_law),
      cmocka_unit_test(test_low_bits_are_uniform_at_large_scales),
      cmocka_unit_test(test_draws_are_independent),
      cmocka_unit_test(test_law_is_symmetric),
      cmocka_unit_test(test_equal_streams_give_equal_draws),
      cmocka_unit_test(test_scales_are_reduced_and_refused),
      cmocka_unit_test(test_bernoulli_exp_has_its_probability),
      cmocka_unit_test(test_bernoulli_exp_of_the_ends),
      cmocka_unit_test(test_an_undecided_comparison_reads_on),
      cmocka_unit_test(test_a_long_run_goes_on_past_the_table),
      cmocka_unit_test(test_every_digit_of_the_table_counts_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
