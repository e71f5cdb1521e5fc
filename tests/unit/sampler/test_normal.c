/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "common/base/err.h"
#include "common/base/grid.h"
#include "simulate/sampler/sampler.h"
#include "tests/support/near.h"
#include "tests/unit/sampler/law.h"
#include "tests/unit/sampler/reference.h"

static const struct {
  double mean, sd;
} laws[] = {{0.5, 0.1}, {0.5, 3}, {0.9, 0.2}, {0, 0.3}, {1, 0.05}, {-0.2, 0.4}, {1.3, 1}, {0.3, 1e-4}};

static double below(double x) {
  return erfc(-x / M_SQRT2) / 2;
}

static void test_all_kernels_agree(void **state) {
  const uint64_t counts[] = {0, 1, 2, 3, 15, 16, 17, 31, 600, 10007};
  for (size_t k = 1; cv_sampler_kernel_at(k) != NULL; k++) {
    if (!cv_sampler_kernel_runs(cv_sampler_kernel_at(k))) {
      print_message("this processor does not run %s\n", cv_sampler_kernel_name(cv_sampler_kernel_at(k)));
      continue;
    }
    struct cv_sampler plain, other;
    cv_sampler_init(&plain, 1, CV_RNG_SCORE, 0, 0);
    other = plain;
    plain.kernel = cv_sampler_kernel_at(0);
    other.kernel = cv_sampler_kernel_at(k);
    for (int round = 0; round < 50; round++) {
      for (size_t i = 0; i < CV_COUNT(laws); i++) {
        for (size_t j = 0; j < CV_COUNT(counts); j++) {
          int64_t expected = cv_sampler_clipped_normal_sum(&plain, counts[j], laws[i].mean, laws[i].sd);
          assert_int_equal(cv_sampler_clipped_normal_sum(&other, counts[j], laws[i].mean, laws[i].sd), expected);
          assert_memory_equal(other.state, plain.state, sizeof(plain.state));
        }
      }
    }
  }
}

/* The sixteen scores of a block with the C library's functions; z is accurate to about 10^-13, so that hardly any
 * score is rounded to another grid point. */
static int64_t reference_block(struct reference *from, double mean, double sd) {
  int64_t sum = 0;
  for (size_t lane = 0; lane < CV_SAMPLER_LANES; lane++) {
    uint64_t first = lane_next(from, lane), second = lane_next(from, lane);
    double u = 1 - (double)(first >> 12) * 0x1p-52, angle = ((double)(second >> 12) * 0x1p-52 - 0.5) * M_PI_2;
    double radius = sqrt(-2 * log(u)), sign = second % 2 == 0 ? 1 : -1;
    sum += cv_grid_from(mean + sd * sign * radius * cos(angle)) + cv_grid_from(mean + sd * radius * sin(angle));
  }
  return sum;
}

static void test_blocks_equal_the_librarys_functions(void **state) {
  enum { BLOCKS = 20000 };
  struct cv_sampler sampler;
  struct reference reference;
  int others = 0;
  cv_sampler_init(&sampler, 6, CV_RNG_SCORE, 0, 0);
  memcpy(reference.state, sampler.state, sizeof(reference.state));
  for (int i = 0; i < BLOCKS; i++) {
    /* As wide as possible while the clipping leaves nearly all of them visible. */
    int64_t expected = reference_block(&reference, 0.5, 0.12);
    int64_t found = cv_sampler_clipped_normal_sum(&sampler, 16, 0.5, 0.12);
    assert_in_range(found - expected + 1, 0, 2);
    others += found != expected;
  }
  assert_true(others < 5);
}

/* Scores one by one, or the last of three: the two cases with less than a pair. Cells of 1/48 of the range, its ends
 * separate. */
static void test_scores_follow_the_law(void **state) {
  enum { DRAWS = 400000, CELLS = 50 };
  for (size_t i = 0; i < CV_COUNT(laws); i++) {
    double mean = laws[i].mean, sd = laws[i].sd, expected[CELLS];
    uint64_t count[CELLS] = {0};
    struct cv_sampler sampler;
    cv_sampler_init(&sampler, 2, CV_RNG_SCORE, i, 0);
    for (int draw = 0; draw < DRAWS; draw++) {
      int64_t score = cv_sampler_clipped_normal_sum(&sampler, 1, mean, sd);
      assert_in_range(score, 0, CV_GRID);
      count[score == 0 ? 0 : score == CV_GRID ? CELLS - 1 : 1 + score * (CELLS - 2) / CV_GRID]++;
    }
    for (int cell = 0; cell < CELLS; cell++) {
      /* The lowest score of cell c is ceil((c - 1)/48), in steps of the grid; it is reached from half a step below. */
      const double half = 0.5 / (double)CV_GRID, width = 1.0 / (CELLS - 2), far = (double)INFINITY;
      double from = ceil((cell - 1) * width * (double)CV_GRID) / (double)CV_GRID - half;
      double to = ceil(cell * width * (double)CV_GRID) / (double)CV_GRID - half;
      from = cell == 0 ? -far : cell == 1 ? half : from;
      to = cell == 0 ? half : cell == CELLS - 1 ? far : to;
      expected[cell] = below((to - mean) / sd) - below((from - mean) / sd);
    }
    char what[64];
    (void)snprintf(what, sizeof(what), "scores of N(%g, %g^2)", mean, sd);
    assert_law(count, expected, CELLS, DRAWS, what);
  }
}

/* Moments of a clipped normal about its mean, by the midpoint rule and the mass at the ends. */
static void moments_of(double mean, double sd, double *ret_mean, double *ret_moment) {
  enum { STEPS = 400000 };
  double first = below((mean - 1) / sd);
  for (int pass = 0; pass < 2; pass++) {
    double sum[5] = {0};
    for (int i = 0; i < STEPS; i++) {
      double x = (i + 0.5) / STEPS, z = (x - mean) / sd, p = exp(-z * z / 2) / (sd * sqrt(2 * M_PI)) / STEPS;
      double d = x - first;
      first += pass == 0 ? p * x : 0;
      for (int m = 2; m < 5 && pass == 1; m++) {
        sum[m] += p * pow(d, m);
      }
    }
    for (int m = 2; m < 5 && pass == 1; m++) {
      ret_moment[m] = sum[m] + below(-mean / sd) * pow(-first, m) + below((mean - 1) / sd) * pow(1 - first, m);
    }
  }
  *ret_mean = first;
}

/* Of sums of n: mean, variance and third moment add up only if the tokens are independent, first of all the pairs. */
static void check_sums(double mean, double sd, uint64_t n, uint64_t seed) {
  enum { SUMS = 200000 };
  double true_mean, moment[5], sum[4] = {0};
  struct cv_sampler sampler;
  moments_of(mean, sd, &true_mean, moment);
  cv_sampler_init(&sampler, 3, CV_RNG_SCORE, seed, n);
  for (int i = 0; i < SUMS; i++) {
    double d = cv_grid_to(cv_sampler_clipped_normal_sum(&sampler, n, mean, sd)) - (double)n * true_mean, power = 1;
    for (int m = 1; m < 4; m++) {
      power *= d;
      sum[m] += power / SUMS;
    }
  }
  double variance = (double)n * moment[2], third = (double)n * moment[3];
  double fourth = (double)n * moment[4] + 3 * (double)n * (double)(n - 1) * moment[2] * moment[2];
  double root = sqrt(variance);
  assert_near(sum[1], 0, 5 * sqrt(variance / SUMS) + 1e-9);
  assert_near(sum[2], variance, 5 * sqrt((fourth - variance * variance) / SUMS) + 1e-9);
  assert_near(sum[3], third, 5 * sqrt(20.0 / SUMS) * root * root * root + 1e-12);
}

static void test_sums_have_their_moments(void **state) {
  const uint64_t n[] = {2, 3, 16, 33};
  for (size_t i = 0; i + 1 < CV_COUNT(laws); i++) {
    for (size_t j = 0; j < CV_COUNT(n); j++) {
      check_sums(laws[i].mean, laws[i].sd, n[j], i);
    }
  }
}

/* A bias of 10^-5 of the grid's width would be detected. */
static void test_many_tokens_have_their_mean(void **state) {
  const double n = 2e8;
  for (size_t i = 0; i < 3; i++) {
    double true_mean, moment[5];
    struct cv_sampler sampler;
    moments_of(laws[i].mean, laws[i].sd, &true_mean, moment);
    cv_sampler_init(&sampler, 4, CV_RNG_SCORE, i, 0);
    double sum = cv_grid_to(cv_sampler_clipped_normal_sum(&sampler, (uint64_t)n, laws[i].mean, laws[i].sd));
    assert_near(sum / n, true_mean, 5 * sqrt(moment[2] / n) + 1e-9);
  }
}

static void test_without_spread(void **state) {
  struct cv_sampler sampler;
  cv_sampler_init(&sampler, 5, CV_RNG_SCORE, 0, 0);
  assert_int_equal(cv_sampler_clipped_normal_sum(&sampler, 1001, 0.25, 0), 1001 * (CV_GRID / 4));
  assert_int_equal(cv_sampler_clipped_normal_sum(&sampler, 1001, 7, 0), 1001 * CV_GRID);
  assert_int_equal(cv_sampler_clipped_normal_sum(&sampler, 1001, -7, 0), 0);
  assert_int_equal(cv_sampler_clipped_normal_sum(&sampler, 0, 0.5, 1), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_kernels_agree),           cmocka_unit_test(test_blocks_equal_the_librarys_functions),
      cmocka_unit_test(test_scores_follow_the_law),       cmocka_unit_test(test_sums_have_their_moments),
      cmocka_unit_test(test_many_tokens_have_their_mean), cmocka_unit_test(test_without_spread),
  };
  return cmocka_run_group_tests_name("normal", tests, NULL, NULL);
}
