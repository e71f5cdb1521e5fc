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
#include "common/base/grid.h"
#include "common/base/rng.h"
#include "common/noise/dlaplace.h"
#include "tests/support/near.h"
#include "thirdparty/policy/laplaces.h"
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
  assert_true(cv_tail_in_scores(&none, CV_TAIL_ONE, 0, 0, 1000, 0.1) == 0);
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
  assert_near(cv_tail_in_scores(&small, CV_TAIL_ONE, 250000, 0, 1000, 0.01), 4 * cv_tail_quantile(&small, 0.01), 1e-9);
}

/* A privatizer's noise in every token is a group as large as there are tokens. */
static void noise_in_tokens_counts_like_any_other(void **state) {
  struct cv_noise none = {0}, released = noise_of(2, 3, 0, 0), all = noise_of(8, 3, 0.5, 1000);
  assert_near(cv_tail_in_scores(&released, CV_TAIL_ONE, 250000, 0.5, 1000, 0.01), cv_tail_quantile(&all, 0.01), 1e-9);
  all = noise_of(0.5, 1000, 0, 0);
  assert_near(cv_tail_in_scores(&none, CV_TAIL_ONE, 0, 0.5, 1000, 0.01), cv_tail_quantile(&all, 0.01), 1e-9);
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

/* ---- the exact tail of two ---- */

static struct cv_tail tail_for(double scale, uint32_t count, double other, uint32_t others) {
  struct cv_noise noise = noise_of(scale, count, other, others);
  return cv_tail_of(&noise);
}

/* -ln P(|Y| > q) of two Laplaces of scale 1. */
static long double level_at(long double q) {
  return q - log1pl(q / 2);
}

static void two_alike_are_exact_and_never_below(void **state) {
  const double scales[] = {1e-100, 1e-3, 1, 7, 1e100};
  for (double level = 1e-300; level < 1e300; level *= 1.7) {
    for (size_t i = 0; i < CV_COUNT(scales); i++) {
      if (!(level * scales[i] > 1e-300 && level * scales[i] < 1e300)) { /* q would not be a double */
        continue;
      }
      struct cv_tail two = tail_for(scales[i], 2, 0, 0), apart = tail_for(scales[i], 1, scales[i], 1);
      double q = cv_tail_at(&two, CV_TAIL_PAIR, level) / scales[i];
      assert_true(level_at((long double)q) >= (long double)level);
      assert_true(level_at((long double)q * (1 - 1e-13L)) < (long double)level);
      assert_true(cv_tail_at(&apart, CV_TAIL_PAIR, level) / scales[i] == q);
    }
  }
  struct cv_tail two = tail_for(1, 2, 0, 0);
  assert_true(cv_tail_at(&two, CV_TAIL_PAIR, 0) == 0);
  /* y = 2 has P = 2 e^-2, y = 8 has 5 e^-8. */
  assert_near(cv_tail_at(&two, CV_TAIL_PAIR, 2 - log(2)), 2, 1e-12);
  assert_near(cv_tail_at(&two, CV_TAIL_PAIR, 8 - log(5)), 8, 1e-12);
}

static void the_smallest_probabilities_have_a_quantile(void **state) {
  struct cv_noise two = noise_of(2, 2, 0, 0);
  double last = 0;
  for (double g = .9; g > 1e-300; g *= .3) {
    double q = cv_tail_in_scores(&two, CV_TAIL_PAIR, 250000, 0, 1000, g);
    assert_true(isfinite(q) && q > last);
    /* Two units of the grid more than the continuous law, and less than Chernoff's bound. */
    double y = (q - 2 / (double)CV_GRID) / 8;
    assert_near((double)level_at((long double)y) / -log(g), 1, 1e-11);
    assert_true(q < cv_tail_in_scores(&two, CV_TAIL_ONE, 250000, 0, 1000, g));
    last = q;
  }
}

static void grows_with_level_and_scale_whatever_the_count(void **state) {
  for (uint32_t count = 1; count <= 3; count++) {
    double last = 0;
    for (double level = 1e-9; level < 1e9; level *= 1.3) {
      struct cv_tail tail = tail_for(2, count, 0, 0), more = tail_for(2, count + 1, 0, 0),
                     wide = tail_for(2.1, count, 0, 0);
      double q = cv_tail_at(&tail, CV_TAIL_PAIR, level);
      assert_true(q > last && cv_tail_at(&more, CV_TAIL_PAIR, level) > q && cv_tail_at(&wide, CV_TAIL_PAIR, level) > q);
      assert_true(cv_tail_at(&more, CV_TAIL_ONE, level) >= cv_tail_at(&more, CV_TAIL_PAIR, level));
      last = q;
    }
  }
}

/* The smaller of two scales counts as the larger one: P of (b^2 e^(-q/b) - c^2 e^(-q/c))/(b^2 - c^2) is less. */
static void two_unlike_are_covered(void **state) {
  for (double c = .05; c < 1; c += .05) {
    struct cv_tail tail = tail_for(c, 1, 1, 1);
    for (double level = .01; level < 600; level *= 1.5) {
      double q = cv_tail_at(&tail, CV_TAIL_PAIR, level);
      double exact = (exp(-q) - c * c * exp(-q / c)) / (1 - c * c);
      assert_true(exact <= exp(-level));
    }
  }
}

/* What a campaign of one broker had before two were known. Values from a program of 50 digits. */
static void one_broker_keeps_its_bounds(void **state) {
  static const struct {
    double scale;
    uint32_t count;
    double g, q;
  } was[] = {{1, 1, 0.05, 2.9957322735539909}, {1, 1, 1e-300, 690.77552789821368}, {2.5, 1, 0.3, 3.0099320108148402},
             {1, 2, 0.05, 7.1215838643505265}, {1, 2, 1e-12, 34.702838797577847},  {4, 2, 0.001, 47.831906249283556},
             {2, 7, 0.01, 28.046337272599978}, {1, 40, 0.001, 36.410311329977709}};
  for (size_t i = 0; i < CV_COUNT(was); i++) {
    struct cv_noise noise = noise_of(was[i].scale, was[i].count, 0, 0);
    assert_near(cv_tail_quantile(&noise, was[i].g) / was[i].q, 1, 1e-12);
    assert_true(cv_tail_in_scores(&noise, CV_TAIL_ONE, 1000000, 0, 5, was[i].g) == cv_tail_quantile(&noise, was[i].g));
  }
  assert_int_equal(cv_tail_use_of(1), CV_TAIL_ONE);
  assert_int_equal(cv_tail_use_of(2), CV_TAIL_PAIR);
}

/* The law that is drawn is discrete, here on a coarse grid: two units farther out it has no larger tail, and two units
 * before it has. */
static void two_discrete_ones_lie_within_two_units(void **state) {
  const double confidence[] = {0.5, 0.2, 0.05, 1e-3, 1e-6};
  for (double unit = 1; unit <= 64; unit *= 4) {
    struct cv_noise two = noise_of(1, 2, 0, 0);
    struct cv_tail tail = cv_tail_of(&two);
    double *law = law_of(&two, unit);
    for (size_t i = 0; i < CV_COUNT(confidence); i++) {
      double q = cv_tail_at(&tail, CV_TAIL_PAIR, -log(confidence[i])) * unit;
      assert_true(tail_of(law, q + 2) <= confidence[i]);
      assert_true(tail_of(law, q - 2) > confidence[i]);
    }
    free(law);
  }
  struct cv_tail one = tail_for(1, 1, 0, 0), two = tail_for(1, 2, 0, 0), three = tail_for(1, 3, 0, 0);
  assert_true(cv_tail_rounding(&two, CV_TAIL_PAIR) == 2 / (double)CV_GRID);
  assert_true(cv_tail_rounding(&two, CV_TAIL_ONE) == 0 && cv_tail_rounding(&one, CV_TAIL_PAIR) == 0);
  assert_true(cv_tail_rounding(&three, CV_TAIL_PAIR) == 0);
}

/* By the sampler that brokers use: each share of draws beyond the quantile within five standard deviations. */
static void drawn_noise_has_this_tail(void **state) {
  enum { DRAWS = 200000 };
  static const double confidence[] = {.5, .1, .01, .001};
  struct cv_rng_seeded rng;
  struct cv_dlaplace law;
  uint32_t beyond[CV_COUNT(confidence)] = {0};
  struct cv_noise two = noise_of(1, 2, 0, 0);
  cv_rng_seeded_init(&rng, 5, CV_RNG_NOISE, 0, 0);
  assert_int_equal(cv_dlaplace_init(&law, (uint64_t)(CV_GRID * CV_MICRO), 250000), CV_OK);
  for (int i = 0; i < DRAWS; i++) {
    double sum = fabs((double)(cv_dlaplace_draw(&law, &rng.rng) + cv_dlaplace_draw(&law, &rng.rng)) / (double)CV_GRID);
    for (size_t j = 0; j < CV_COUNT(confidence); j++) {
      beyond[j] += sum > cv_tail_in_scores(&two, CV_TAIL_PAIR, 250000, 0, 1, confidence[j]);
    }
  }
  for (size_t j = 0; j < CV_COUNT(confidence); j++) {
    double g = confidence[j], spread = 5 * sqrt(DRAWS * g * (1 - g));
    assert_true(beyond[j] <= DRAWS * g + spread && beyond[j] >= DRAWS * g - spread);
  }
}

/* ---- the exact tail of what there is ---- */

/* The quantile in D/epsilon. */
static double exact_of(const struct cv_noise *noise, double g) {
  return cv_tail_exact_in_scores(noise, 1000000, g);
}

static void tail_and_hazard_of_a_sum_as_computed_by_hand(void **state) {
  for (double y = -6; y < 30; y += .37) {
    double above = y < 0 ? 1 - exp(y) / 2 : exp(-y) / 2, twice = exp(-fabs(y)) * (2 + fabs(y)) / 4;
    assert_near(exp(cv_laplaces_at(y, 1).log_tail), above, 1e-14);
    assert_near(exp(cv_laplaces_at(y, 2).log_tail), y < 0 ? 1 - twice : twice, 1e-14);
    for (uint32_t k = 1; k <= CV_LAPLACES_MAX; k++) {
      struct cv_laplaces_at at = cv_laplaces_at(y, k), next = cv_laplaces_at(y + 1e-5, k);
      assert_near((at.log_tail - next.log_tail) / 1e-5 / at.hazard, 1, 1e-4);
      assert_true(at.hazard > 0 && at.hazard <= 1 && next.hazard >= at.hazard * (1 - 1e-12));
    }
  }
}

static void alike_ones_are_split_from_the_rest(void **state) {
  struct cv_noise noise = {.groups = 4, .group = {{2, 3}, {5, 2}, {1, 7}, {5, 40}}};
  struct cv_laplaces_split split;
  cv_laplaces_split(&noise, 32, &split);
  assert_true(split.alike == 32 && split.scale == 5);
  assert_true(split.rest.groups == 3 && split.rest.group[2].scale == 5 && split.rest.group[2].count == 10);
  cv_laplaces_split(&(struct cv_noise){0}, 32, &split);
  assert_true(split.alike == 0 && split.rest.groups == 0);
}

/* Mechanisms' noises: hybrid's at 3, 7 and 40, of one broker and of two, segments', kary-blocks', and many small ones
 * beside a large one. */
static const struct cv_noise what_there_is[] = {
    {1, {{2, 1}}},
    {1, {{1, 2}}},
    {1, {{1, 7}}},
    {1, {{1, 32}}},
    {1, {{1, 60}}},
    {2, {{2, 2}, {2, 1}}},
    {2, {{2, 3}, {4, 2}}},
    {2, {{2, 6}, {4, 4}}},
    {2, {{2, 6}, {10, 1}}},
    {2, {{2, 12}, {10, 2}}},
    {4, {{1, 1}, {2, 1}, {3, 1}, {4, 5}}},
    {2, {{3, 1}, {.5, 800}}},
};

/* Against the law of the sum by convolution, on a coarse grid: of each exact noise within one of its units. */
static void the_exact_tail_is_never_below_the_law_and_near_it(void **state) {
  const double unit = 8, confidence[] = {0.5, 0.2, 0.05, 1e-3, 1e-6};
  for (size_t c = 0; c < CV_COUNT(what_there_is); c++) {
    const struct cv_noise *noise = &what_there_is[c];
    struct cv_laplaces_split split;
    double *law = law_of(noise, unit);
    cv_laplaces_split(noise, CV_LAPLACES_MAX, &split);
    for (size_t i = 0; i < CV_COUNT(confidence); i++) {
      double g = confidence[i], q = (exact_of(noise, g) - split.alike / (double)CV_GRID) * unit;
      assert_true(tail_of(law, q + split.alike) <= g);
      if (split.rest.groups == 0) {
        assert_true(tail_of(law, q - split.alike - 1) > g);
      } else if (g < .1) { /* some hundreds of small ones have their moments alone */
        assert_true(tail_of(law, q * (split.rest.group[0].count > 100 ? .79 : .94)) > g);
      }
    }
    free(law);
  }
}

/* Whatever there is, up to the discrete noise's units; and by an eighth and more where noises are few. */
static void the_exact_tail_is_within_chernoffs(void **state) {
  for (size_t c = 0; c < CV_COUNT(what_there_is); c++) {
    double last = (double)INFINITY;
    for (double g = 1e-300; g < 1; g = g * 2.7 < 1 ? g * 2.7 : 2) {
      const struct cv_noise *noise = &what_there_is[c];
      double q = exact_of(noise, g), bound = cv_tail_quantile(noise, g);
      assert_true(q > 0 && q <= bound + CV_LAPLACES_MAX / (double)CV_GRID && q < last);
      last = q;
    }
  }
  assert_true(exact_of(&what_there_is[6], 1e-4) < .88 * cv_tail_quantile(&what_there_is[6], 1e-4));
  struct cv_noise one = noise_of(3, 1, 0, 0), two = noise_of(3, 2, 0, 0);
  assert_near(exact_of(&one, .01), 3 * log(100) + 1 / (double)CV_GRID, 1e-9);
  assert_true(exact_of(&(struct cv_noise){0}, .01) == 0);
  assert_near(exact_of(&two, .01), cv_tail_in_scores(&two, CV_TAIL_PAIR, 1000000, 0, 1, .01), 1e-9);
}

/* By the sampler that brokers use, of hybrid's sixth release: not more often than said, nor much less often. */
static void drawn_noise_of_several_scales_has_this_tail(void **state) {
  enum { DRAWS = 40000 };
  static const double confidence[] = {.5, .1, .01, .001};
  struct cv_rng_seeded rng;
  struct cv_dlaplace small, large;
  uint32_t beyond[CV_COUNT(confidence)] = {0};
  const struct cv_noise noise = noise_of(2, 3, 4, 2);
  cv_rng_seeded_init(&rng, 6, CV_RNG_NOISE, 0, 0);
  assert_int_equal(cv_dlaplace_init(&small, (uint64_t)(2 * CV_GRID * CV_MICRO), 250000), CV_OK);
  assert_int_equal(cv_dlaplace_init(&large, (uint64_t)(4 * CV_GRID * CV_MICRO), 250000), CV_OK);
  for (int i = 0; i < DRAWS; i++) {
    int64_t sum = 0;
    for (int j = 0; j < 5; j++) {
      sum += cv_dlaplace_draw(j < 3 ? &small : &large, &rng.rng);
    }
    for (size_t j = 0; j < CV_COUNT(confidence); j++) {
      beyond[j] += fabs((double)sum / (double)CV_GRID) > cv_tail_exact_in_scores(&noise, 250000, confidence[j]);
    }
  }
  for (size_t j = 0; j < CV_COUNT(confidence); j++) {
    double g = confidence[j], spread = 5 * sqrt(DRAWS * g * (1 - g));
    assert_true(beyond[j] <= DRAWS * g + spread && beyond[j] >= DRAWS * g / 4 - spread);
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
      cmocka_unit_test(two_alike_are_exact_and_never_below),
      cmocka_unit_test(the_smallest_probabilities_have_a_quantile),
      cmocka_unit_test(grows_with_level_and_scale_whatever_the_count),
      cmocka_unit_test(two_unlike_are_covered),
      cmocka_unit_test(one_broker_keeps_its_bounds),
      cmocka_unit_test(two_discrete_ones_lie_within_two_units),
      cmocka_unit_test(drawn_noise_has_this_tail),
      cmocka_unit_test(tail_and_hazard_of_a_sum_as_computed_by_hand),
      cmocka_unit_test(alike_ones_are_split_from_the_rest),
      cmocka_unit_test(the_exact_tail_is_never_below_the_law_and_near_it),
      cmocka_unit_test(the_exact_tail_is_within_chernoffs),
      cmocka_unit_test(drawn_noise_of_several_scales_has_this_tail),
      cmocka_unit_test(hostile_groups_are_recognised),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
