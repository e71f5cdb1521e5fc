/* SPDX-License-Identifier: Apache-2.0 */
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
#include "tests/support/near.h"
#include "thirdparty/policy/posterior.h"

static struct cv_feedback feedback_of(double at_0, double at_1) {
  return (struct cv_feedback){.offset = at_0, .slope = at_1 - at_0};
}

/* The mass of l^ones (1-l)^zeros, relative to its value at l = mode, between two l, by Simpson's rule. */
static double mass_between(double ones, double zeros, double mode, double from, double to) {
  enum { STEPS = 4000 };
  double sum = 0, step = (to - from) / STEPS;
  for (int i = 0; i <= STEPS; i++) {
    double l = i == STEPS ? to : from + i * step;
    double up = ones > 0 ? ones * log(l / mode) : 0, down = zeros > 0 ? zeros * log((1 - l) / (1 - mode)) : 0;
    sum += exp(up + down) * (i == 0 || i == STEPS ? 1 : i % 2 == 1 ? 4 : 2);
  }
  return sum * step / 3;
}

/* The part of the posterior's mass above a score, integrated over 40 deviations on each side of the mode, or as far as
 * it takes to fall by e^-40 if the mode is an end of [0,1]. */
static double mass_above(double ones, double zeros, struct cv_feedback feedback, double q) {
  double n = ones + zeros, at_0 = feedback.offset, at_1 = at_0 + feedback.slope, l = at_0 + feedback.slope * q;
  double low = fmin(at_0, at_1), high = fmax(at_0, at_1), mode = fmin(high, fmax(low, ones / n));
  double steep = fabs(ones - n * mode) / (mode * (1 - mode));
  double wide = fmin(40 * sqrt(fmax(mode * (1 - mode), 1 / n) / n), steep < 1 ? 1 : 40 / steep),
         from = fmax(low, mode - wide), to = fmin(high, mode + wide);
  double all = mass_between(ones, zeros, mode, from, mode) + mass_between(ones, zeros, mode, mode, to);
  double part = feedback.slope > 0 ? mass_between(ones, zeros, mode, l, to) : mass_between(ones, zeros, mode, from, l);
  return part / all;
}

/* Without zeros the posterior is (n+1) q^n, whose quantile is (1 - tail)^(1/(n+1)); without ones it is the mirrored. */
static void tokens_of_one_kind_have_a_closed_form(void **state) {
  static const double tails[] = {0.5, 0.05, 1e-3, 1e-5};
  for (double n = 1; n < 1e7; n *= 10) {
    for (size_t i = 0; i < CV_COUNT(tails); i++) {
      double most = -expm1(log1p(-tails[i]) / (n + 1)), least = -expm1(log(tails[i]) / (n + 1));
      double ones = 1 - cv_posterior_upper(n, 0, feedback_of(0, 1), tails[i]);
      assert_near(ones / most, 1, 0.002);
      assert_near(cv_posterior_upper(0, n, feedback_of(0, 1), tails[i]) / least, 1, 0.002);
      /* With inverted answers zeros are high scores. */
      assert_near((1 - cv_posterior_upper(0, n, feedback_of(1, 0), tails[i])) / most, 1, 0.002);
    }
  }
}

static void the_mass_above_is_the_tail(void **state) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 7, 99, 0, 0);
  for (int i = 0; i < 600; i++) {
    double n = floor(exp(log(3e4) * cv_rng_unit(&rng.rng))) + 1, ones = n * cv_rng_unit(&rng.rng);
    ones = i % 3 == 0 ? ones : i % 10 == 0 ? n : floor(ones); /* also parts of tokens */
    double keep = i % 5 == 0 ? 1 : 0.55 + 0.44 * cv_rng_unit(&rng.rng), other = i % 2 == 0 ? keep : 0.7;
    struct cv_feedback feedback = i % 4 == 0 ? feedback_of(keep, 1 - other) : feedback_of(1 - other, keep);
    double tail = i % 7 == 0 ? 0.5 : fmin(0.5, exp(log(1e-5) * cv_rng_unit(&rng.rng)));
    double q = cv_posterior_upper(ones, n - ones, feedback, tail);
    assert_true(q > 0 && q < 1);
    assert_near(mass_above(ones, n - ones, feedback, q) / tail, 1, 0.002);
  }
}

/* Tokens that no score explains: the posterior is at the end of [0,1], far in the tail of the likelihood. */
static void impossible_means_lie_at_the_ends(void **state) {
  double low = cv_posterior_upper(0, 1e6, feedback_of(0.4, 0.6), 1e-4);
  double high = cv_posterior_upper(1e6, 0, feedback_of(0.4, 0.6), 1e-4);
  assert_true(low > 0 && low < 1e-4 && high < 1 && high > 1 - 1e-4);
  assert_near(cv_posterior_upper(1e6, 0, feedback_of(0.6, 0.4), 1e-4), low, 1e-12);
}

static void the_quantile_orders_as_it_should(void **state) {
  struct cv_feedback plain = feedback_of(0, 1), noisy = feedback_of(0.4, 0.6);
  double last = 0;
  for (double ones = 0; ones <= 200; ones++) {
    double q = cv_posterior_upper(ones, 200 - ones, noisy, 1e-3);
    assert_true(q > last); /* never a tie between different sums */
    last = q;
  }
  assert_true(cv_posterior_upper(50, 50, noisy, 1e-3) > cv_posterior_upper(50, 50, plain, 1e-3));
  assert_true(cv_posterior_upper(50, 50, plain, 1e-6) > cv_posterior_upper(50, 50, plain, 1e-3));
  /* A grid of 256 points could not tell these two apart. */
  assert_true(cv_posterior_upper(500001, 499999, plain, 1e-3) > cv_posterior_upper(500000, 500000, plain, 1e-3));
  /* A normal's upper quantile of 1e-3 is 3.0902 deviations. */
  assert_near((cv_posterior_upper(5e11, 5e11, plain, 1e-3) - 0.5) * 2e6, 3.0902, 1e-3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tokens_of_one_kind_have_a_closed_form),
      cmocka_unit_test(the_mass_above_is_the_tail),
      cmocka_unit_test(impossible_means_lie_at_the_ends),
      cmocka_unit_test(the_quantile_orders_as_it_should),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
