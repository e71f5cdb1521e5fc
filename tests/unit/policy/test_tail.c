/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/err.h"
#include "tests/support/near.h"
#include "thirdparty/policy/tail.h"

enum { HALF = 6000, WIDTH = 2 * HALF + 1 };

static struct cv_noise noise_of(double scale, uint32_t count, double other, uint32_t others) {
  struct cv_noise noise = {.groups = others > 0 ? 2 : 1, .group = {{scale, count}, {other, others}}};
  return noise;
}

/* Convolves `law` (over -HALF .. HALF) with the discrete Laplace law of this scale: two one-sided geometric passes. */
static void convolve(double *law, double scale) {
  double a = exp(-1 / scale), norm = (1 - a) / (1 + a), run = 0;
  double *out = calloc(WIDTH, sizeof(*out));
  for (int i = 0; i < WIDTH; i++) {
    run = run * a + law[i];
    out[i] += run;
  }
  run = 0;
  for (int i = WIDTH - 1; i >= 0; i--) {
    out[i] += run * a;
    run = run * a + law[i];
  }
  for (int i = 0; i < WIDTH; i++) {
    law[i] = out[i] * norm;
  }
  free(out);
}

static double *law_of(const struct cv_noise *noise, double unit) {
  double *law = calloc(WIDTH, sizeof(*law));
  law[HALF] = 1;
  for (uint32_t g = 0; g < noise->groups; g++) {
    for (uint32_t i = 0; i < noise->group[g].count; i++) {
      convolve(law, noise->group[g].scale * unit);
    }
  }
  return law;
}

/* P(|Y| > q). */
static double tail_of(const double *law, double q) {
  double p = 0;
  for (int i = 0; i < WIDTH; i++) {
    p += fabs((double)(i - HALF)) > q ? law[i] : 0;
  }
  return p;
}

static void a_single_draw_is_exact(void **state) {
  struct cv_noise one = noise_of(2, 1, 0, 0);
  assert_near(cv_tail_quantile(&one, 0.05), 2 * log(20), 1e-12);
  assert_near(cv_tail_quantile(&one, 1e-30), 2 * 30 * log(10), 1e-9);
}

static void no_noise_has_no_tail(void **state) {
  struct cv_noise none = {0};
  assert_true(cv_tail_quantile(&none, 0.1) == 0);
  assert_true(cv_tail_in_scores(&none, 0, 0, 1000, 0.1) == 0);
}

static void two_draws_as_computed_by_hand(void **state) {
  /* b = 1, v = 2, g = 2/e: the best x has 2s - ln(1+s) = 1/2. */
  struct cv_noise two = noise_of(1, 2, 0, 0);
  double best = (double)INFINITY;
  for (int i = 1; i < 10000; i++) {
    double x = i / 1e4;
    best = fmin(best, (-2 * log(1 - x * x) + 1) / x);
  }
  assert_near(cv_tail_quantile(&two, 2 / exp(1)), best, 1e-6);
  /* How noises are grouped does not change the result. */
  struct cv_noise apart = noise_of(1, 1, 1, 1);
  assert_near(cv_tail_quantile(&apart, 0.01), cv_tail_quantile(&two, 0.01), 1e-12);
}

static void scales_with_the_unit(void **state) {
  struct cv_noise small = noise_of(2, 3, 5, 2), large = noise_of(20, 3, 50, 2);
  assert_near(cv_tail_quantile(&large, 0.01), 10 * cv_tail_quantile(&small, 0.01), 1e-9);
  assert_near(cv_tail_in_scores(&small, 250000, 0, 1000, 0.01), 4 * cv_tail_quantile(&small, 0.01), 1e-9);
}

/* A privatizer's noise in every token is a group as large as there are tokens. */
static void noise_in_tokens_counts_like_any_other(void **state) {
  struct cv_noise none = {0}, released = noise_of(2, 3, 0, 0), all = noise_of(8, 3, 0.5, 1000);
  assert_near(cv_tail_in_scores(&released, 250000, 0.5, 1000, 0.01), cv_tail_quantile(&all, 0.01), 1e-9);
  all = noise_of(0.5, 1000, 0, 0);
  assert_near(cv_tail_in_scores(&none, 0, 0.5, 1000, 0.01), cv_tail_quantile(&all, 0.01), 1e-9);
}

/* The most groups that a release may have, and one more. */
static void as_many_groups_as_fit_count(void **state) {
  struct cv_noise many = {.groups = CV_NOISE_GROUPS_MAX}, one = noise_of(3, CV_NOISE_GROUPS_MAX, 0, 0);
  for (uint32_t i = 0; i < CV_NOISE_GROUPS_MAX; i++) {
    many.group[i] = (struct cv_noise_group){.scale = 3, .count = 1};
  }
  assert_true(cv_tail_is_valid(&many));
  assert_near(cv_tail_quantile(&many, 0.01), cv_tail_quantile(&one, 0.01), 1e-9);
}

static void grows_with_confidence_noise_and_scale(void **state) {
  double last = 0, g = 0.5;
  while (g > 1e-60) {
    struct cv_noise noise = noise_of(2, 7, 12, 3), more = noise_of(2, 8, 12, 3), wider = noise_of(2, 7, 13, 3);
    double q = cv_tail_quantile(&noise, g);
    assert_true(q > last);
    assert_true(cv_tail_quantile(&more, g) > q);
    assert_true(cv_tail_quantile(&wider, g) > q);
    last = q;
    g /= 3;
  }
}

static void covers_the_exact_law_and_is_not_wasteful(void **state) {
  static const struct {
    double scale;
    uint32_t count;
    double other;
    uint32_t others;
  } cases[] = {{1, 1, 0, 0}, {1, 2, 0, 0}, {1, 7, 0, 0}, {2, 4, 6, 2}, {2, 1, 20, 1}, {2, 11, 20, 5}};
  const double unit = 8, confidence[] = {0.2, 0.05, 1e-3, 1e-6};
  for (size_t c = 0; c < CV_COUNT(cases); c++) {
    struct cv_noise noise = noise_of(cases[c].scale, cases[c].count, cases[c].other, cases[c].others);
    double *law = law_of(&noise, unit);
    for (size_t i = 0; i < CV_COUNT(confidence); i++) {
      double g = confidence[i], q = cv_tail_quantile(&noise, g);
      /* The single draw is exact for the continuous law; the grid of this test is coarse, hence one unit more. */
      assert_true(tail_of(law, q * unit + (cases[c].count == 1 && cases[c].others == 0)) <= g);
      assert_true(tail_of(law, q * unit * (g > 0.01 ? 0.33 : 0.5)) > g);
    }
    free(law);
  }
}

static void hostile_groups_are_recognised(void **state) {
  struct cv_noise good = noise_of(2, 3, 5, 2);
  assert_true(cv_tail_is_valid(&good));
  static const double bad[] = {0, -1, (double)NAN, (double)INFINITY, 1e300, 1e-300};
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct cv_noise noise = noise_of(bad[i], 1, 0, 0);
    assert_false(cv_tail_is_valid(&noise));
  }
  struct cv_noise none_of_it = noise_of(1, 0, 0, 0), too_many = {.groups = CV_NOISE_GROUPS_MAX + 1};
  assert_false(cv_tail_is_valid(&none_of_it));
  assert_false(cv_tail_is_valid(&too_many));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_single_draw_is_exact),
      cmocka_unit_test(no_noise_has_no_tail),
      cmocka_unit_test(two_draws_as_computed_by_hand),
      cmocka_unit_test(scales_with_the_unit),
      cmocka_unit_test(noise_in_tokens_counts_like_any_other),
      cmocka_unit_test(as_many_groups_as_fit_count),
      cmocka_unit_test(grows_with_confidence_noise_and_scale),
      cmocka_unit_test(covers_the_exact_law_and_is_not_wasteful),
      cmocka_unit_test(hostile_groups_are_recognised),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
