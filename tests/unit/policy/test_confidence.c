/* SPDX-License-Identifier: Apache-2.0 */
/* Each limit against its definition, and how often it excludes the true mean. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>

#include "common/base/err.h"
#include "common/base/grid.h"
#include "common/base/rng.h"
#include "tests/support/near.h"
#include "thirdparty/policy/confidence.h"

static const struct cv_noise silence = {0};

static struct cv_noise laplaces(uint32_t k) {
  return (struct cv_noise){.groups = 1, .group = {{.scale = 1, .count = k}}};
}

/* ---- the tilted tail ---- */

/* P(N >= y), y >= 0, for two and three Laplace variables: partial fractions of the characteristic function. */
static double tail_of_two(double y) {
  return exp(-y) * (2 + y) / 4;
}

static double tail_of_three(double y) {
  return exp(-y) * (8 + 5 * y + y * y) / 16;
}

static double supremum(double x, double (*tail)(double y)) {
  double best = -(double)INFINITY;
  for (double y = -80; y < 400; y += 1.0 / 256) {
    best = fmax(best, x * y + log(y >= 0 ? tail(y) : 1 - tail(-y)));
  }
  return best;
}

static void the_tilt_is_the_supremum_over_the_tail(void **state) {
  for (double x = 0.02; x < 0.99; x += 0.07) {
    assert_near(cv_laplace_tilt(x, 2), supremum(x, tail_of_two), 1e-4);
    assert_near(cv_laplace_tilt(x, 3), supremum(x, tail_of_three), 1e-4);
    assert_true(cv_laplace_tilt(x, 2) >= supremum(x, tail_of_two));
    assert_true(cv_laplace_tilt(x, 3) >= supremum(x, tail_of_three));
  }
  /* One: e^(-x u) (1 - e^-u / 2) at its best u, 1/2 for x = 1. */
  for (double x = 0.02; x < 1; x += 0.07) {
    double best = 0;
    for (double u = 0; u < 40; u += 1.0 / 1024) {
      best = fmax(best, exp(-x * u) * (1 - exp(-u) / 2));
    }
    assert_near(cv_laplace_tilt(x, 1), log(best), 1e-5);
  }
  assert_near(cv_laplace_tilt(1, 1), log(0.5), 1e-15);
  assert_true(isinf(cv_laplace_tilt(1, 2)));
  assert_near(cv_laplace_tilt(0.5, 0), 0, 0);
}

/* Of noises with two scales: the tilt of those of the larger one, and the moments of the others. */
static void a_look_takes_the_exact_tail_of_the_largest_noises(void **state) {
  const struct cv_noise noise = {.groups = 3, .group = {{2, 3}, {4, 1}, {4, 1}}}, alike = {1, {{2, 5}}};
  const struct cv_noise many = {1, {{2, CV_TILT_EXACT + 3}}};
  const struct cv_noisy_sum at = {.tokens = 1, .unit = 1.5, .noise = &noise}, same = {1, 0, 1.5, &alike},
                            more = {1, 0, 1.5, &many};
  struct cv_look look, any, kept[CV_TILT_EXACT] = {0};
  cv_look_init_exact(&at, kept, &look);
  cv_look_init_any(&at, &any);
  for (int i = 0; i < CV_LOOK_GRID - 1; i++) {
    double x = look.x[i], others = -3 * log1p(-9 * x * x);
    assert_near(x, any.x[i], 1e-15);
    assert_near(look.cost[i], cv_laplace_tilt(6 * x, 2) + others, 1e-5);
    assert_true(look.cost[i] >= cv_laplace_tilt(6 * x, 2) + others + 2 * x / (double)CV_GRID - 1e-12);
    assert_true(look.cost[i] < any.cost[i] - .01);
  }
  cv_look_init_exact(&same, kept, &look);
  cv_look_init_for(&same, &any);
  for (int i = 0; i < CV_LOOK_GRID - 1; i++) {
    assert_near(look.cost[i], any.cost[i], 1e-4);
  }
  cv_look_init_exact(&more, kept, &look);
  cv_look_init_any(&more, &any);
  for (int i = 0; i < CV_LOOK_GRID - 1; i++) {
    assert_true(look.cost[i] < any.cost[i]);
  }
}

/* Markov's inequality with e^(x N): the exact tail costs less than the moment generating function. */
static void the_tilt_stays_below_chernoffs(void **state) {
  for (uint32_t k = 1; k <= 12; k++) {
    for (double x = 0.02; x < 1; x += 0.05) {
      double tilt = cv_laplace_tilt(x, k), chernoff = -(double)k * log1p(-x * x);
      assert_true(tilt <= chernoff + 1e-9);
      assert_true(k > CV_TILT_EXACT || tilt < chernoff - 0.02);
      assert_true(k == 1 || k > CV_TILT_EXACT || tilt >= cv_laplace_tilt(x, k - 1) - 0.7);
    }
  }
}

/* ---- limits against their definition ---- */

static double psi(double m, double x) {
  return log(1 - m + m * exp(x));
}

static bool look_excludes(const struct cv_look *look, const struct cv_noisy_sum *at, double level, double m) {
  for (int i = 0; i < CV_LOOK_GRID; i++) {
    if (look->x[i] * at->sum - at->tokens * psi(m, look->x[i]) - look->cost[i] >= level) {
      return true;
    }
  }
  return false;
}

static bool mixture_excludes(const struct cv_mixture *mixture, const struct cv_noisy_sum *at, double level, double m) {
  double sum = 0;
  for (uint32_t j = 0; j < mixture->n; j++) {
    double x = mixture->x[j], exponent = mixture->log_weight[j] + x * at->sum - at->tokens * psi(m, x) - level;
    for (uint32_t i = 0; i < at->noise->groups; i++) {
      exponent += at->noise->group[i].count * log(1 - pow(x * at->unit * at->noise->group[i].scale, 2));
    }
    sum += exp(exponent);
  }
  return sum >= 1;
}

static void limits_separate_what_is_excluded(void **state) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 7, 1, 0, 0);
  for (int i = 0; i < 2000; i++) {
    uint32_t k = 1 + (uint32_t)cv_rng_below(&rng.rng, 3);
    double unit = i % 4 == 0 ? 0 : exp(6 * cv_rng_unit(&rng.rng) - 2), level = 1 + 10 * cv_rng_unit(&rng.rng);
    struct cv_noise noise = unit > 0 ? laplaces(k) : silence;
    double tokens = ceil(exp(12 * cv_rng_unit(&rng.rng)));
    struct cv_noisy_sum at = {
        .tokens = tokens, .sum = (1.4 * cv_rng_unit(&rng.rng) - 0.2) * tokens, .unit = unit, .noise = &noise};
    struct cv_look look;
    struct cv_mixture mixture;
    cv_look_init(unit, unit > 0 ? k : 0, &look);
    cv_mixture_init(unit, &mixture);
    double low = cv_look_low(&look, &at, level), sum_low = cv_mixture_low(&mixture, &at, level);
    assert_true(low >= 0 && low <= 1 && sum_low >= 0 && sum_low <= 1);
    assert_true(low == 0 || look_excludes(&look, &at, level, low * (1 - 1e-9)));
    assert_true(low == 1 || !look_excludes(&look, &at, level, low + 1e-9 * (1 - low)));
    assert_true(sum_low == 0 || mixture_excludes(&mixture, &at, level, sum_low * (1 - 1e-9)));
    assert_true(sum_low == 1 || !mixture_excludes(&mixture, &at, level, sum_low + 1e-6 * (1 - sum_low)));
  }
}

static void the_mixture_has_weight_1_and_x_in_range(void **state) {
  static const double units[] = {0, 0.1, 1, 4, 100, 1000, 1e6};
  for (size_t i = 0; i < CV_COUNT(units); i++) {
    struct cv_mixture mixture;
    double sum = 0;
    cv_mixture_init(units[i], &mixture);
    for (uint32_t j = 0; j < mixture.n; j++) {
      sum += exp(mixture.log_weight[j]);
      assert_true(mixture.x[j] > 0 && mixture.x[j] <= 3 && mixture.x[j] * units[i] < 1);
    }
    assert_near(sum, 1, 1e-12);
    assert_true(mixture.n >= 7);
  }
}

/* A peer's release may carry any noise: no limit, and no NAN. */
static void noise_beyond_all_bounds_excludes_nothing(void **state) {
  struct cv_noise noise = {.groups = 2,
                           .group = {{.scale = 1e100, .count = UINT32_MAX}, {.scale = 1e-100, .count = 1}}};
  struct cv_noisy_sum at = {.tokens = 1e6, .sum = 1e6, .unit = 4, .noise = &noise};
  struct cv_mixture mixture;
  struct cv_look look;
  cv_mixture_init(4, &mixture);
  cv_look_init_any(&at, &look);
  assert_near(cv_mixture_low(&mixture, &at, 5), 0, 0);
  assert_near(cv_look_low(&look, &at, 5), 0, 1e-6);
}

static void limits_only_narrow_also_where_they_contradict(void **state) {
  double low = 0, high = 1;
  cv_limits_narrow(0.4, 0.6, &low, &high);
  assert_true(low == 0.4 && high == 0.6);
  cv_limits_narrow(0.1, 0.5, &low, &high);
  assert_true(low == 0.4 && high == 0.5);
  cv_limits_narrow(0.8, 0.9, &low, &high); /* beyond what is left */
  assert_true(low == 0.5 && high == 0.5);
  low = 0.4;
  high = 0.6;
  cv_limits_narrow(0.58, 0.42, &low, &high); /* contradict each other */
  assert_near(low, 0.5, 1e-15);
  assert_true(low == high);
}

/* ---- how often the truth is excluded ---- */

/* The smallest S at which the look excludes m. */
static double threshold(const struct cv_look *look, struct cv_noisy_sum at, double level, double m) {
  double low = -1000, high = 2000;
  for (int i = 0; i < 100; i++) {
    at.sum = (low + high) / 2;
    *(cv_look_low(look, &at, level) >= m ? &high : &low) = at.sum;
  }
  return high;
}

/* The probability that binomial tokens and noise reach s, without any simulation. */
static double reaches(uint32_t tokens, double m, double unit, double (*tail)(double y), double s) {
  double sum = 0;
  for (uint32_t ones = 0; ones <= tokens; ones++) {
    double n = tokens, b = ones;
    double chance = exp(lgamma(n + 1) - lgamma(b + 1) - lgamma(n - b + 1) + b * log(m) + (n - b) * log1p(-m));
    double y = (s - b) / unit;
    sum += chance * (y >= 0 ? tail(y) : 1 - tail(-y));
  }
  return sum;
}

static double tail_of_one(double y) {
  return exp(-y) / 2;
}

static void a_look_excludes_the_truth_no_more_often_than_its_level(void **state) {
  static double (*const tails[])(double) = {tail_of_one, tail_of_two, tail_of_three};
  static const uint32_t lengths[] = {5, 50, 400};
  double closest = 0;
  for (uint32_t k = 1; k <= 3; k++) {
    for (size_t t = 0; t < CV_COUNT(lengths); t++) {
      for (double unit = 0.5; unit < 20; unit *= 2) {
        for (double m = 0.05; m < 1; m += 0.15) {
          struct cv_noise noise = laplaces(k);
          struct cv_noisy_sum at = {.tokens = lengths[t], .unit = unit, .noise = &noise};
          struct cv_look look;
          double level = log(50);
          cv_look_init(unit, k, &look);
          double error = reaches(lengths[t], m, unit, tails[k - 1], threshold(&look, at, level, m));
          assert_true(error <= 0.02 * (1 + 1e-6));
          closest = fmax(closest, error);
        }
      }
    }
  }
  assert_true(closest > 0.012); /* and not much less often: nothing is given away */
}

/* The looks choose their lengths from what they see: stop at the first excess. */
static void the_mixture_excludes_the_truth_rarely_over_all_looks(void **state) {
  enum { RUNS = 4000, LOOKS = 30 };
  static const double unit = 4, level = 2.302585092994046; /* ln 10 */
  struct cv_mixture mixture;
  int errors = 0;
  cv_mixture_init(unit, &mixture);
  for (uint64_t run = 0; run < RUNS; run++) {
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, 11, run, 0, 0);
    double m = 0.1 + 0.8 * (double)(run % 9) / 8, tokens = 0, sum = 0;
    bool excluded = false;
    for (uint32_t n = 1; n <= LOOKS && !excluded; n++) {
      double more = sum < m * tokens ? 60 : 20; /* go on where it may still turn */
      for (double i = 0; i < more; i++) {
        sum += cv_rng_unit(&rng.rng) < m;
      }
      tokens += more;
      sum += unit * (log(cv_rng_unit(&rng.rng)) - log(cv_rng_unit(&rng.rng)));
      struct cv_noise noise = laplaces(n);
      struct cv_noisy_sum at = {.tokens = tokens, .sum = sum, .unit = unit, .noise = &noise};
      excluded = cv_mixture_low(&mixture, &at, level) > m;
    }
    errors += excluded;
  }
  /* 400 are allowed; five standard deviations more would be 495. */
  assert_in_range(errors, 10, 400);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_tilt_is_the_supremum_over_the_tail),
      cmocka_unit_test(the_tilt_stays_below_chernoffs),
      cmocka_unit_test(a_look_takes_the_exact_tail_of_the_largest_noises),
      cmocka_unit_test(limits_separate_what_is_excluded),
      cmocka_unit_test(the_mixture_has_weight_1_and_x_in_range),
      cmocka_unit_test(noise_beyond_all_bounds_excludes_nothing),
      cmocka_unit_test(limits_only_narrow_also_where_they_contradict),
      cmocka_unit_test(a_look_excludes_the_truth_no_more_often_than_its_level),
      cmocka_unit_test(the_mixture_excludes_the_truth_rarely_over_all_looks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
