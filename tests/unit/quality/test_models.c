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
#include "common/config/rewards.h"
#include "tests/support/near.h"
#include "worker/quality/quality.h"

enum { DRAWS = 200000, STEPS = 200000 };

static struct cv_quality *source(const char *model, double mean, double spread, uint64_t seed) {
  const struct cv_quality_item item[] = {{mean, spread}, {mean, spread}};
  struct cv_quality *quality = NULL;
  struct cv_why why = {0};
  assert_non_null(cv_quality_model_find(model));
  assert_int_equal(cv_quality_new(cv_quality_model_find(model), item, 2, seed, &quality, &why), CV_OK);
  return quality;
}

static double score(const struct cv_quality *quality, uint32_t arm, uint64_t place) {
  int64_t value = -1;
  assert_int_equal(cv_quality_score(quality, arm, place, &value), CV_OK);
  assert_in_range(value, 0, CV_GRID);
  return cv_grid_to(value);
}

/* Mean and variance of the scores against theory, five standard errors wide. */
static void check_law(const char *model, double mean, double spread, double true_mean, double true_variance) {
  struct cv_quality *quality = source(model, mean, spread, 1);
  double sum = 0, squares = 0, fourths = 0;
  for (int i = 0; i < DRAWS; i++) {
    double x = score(quality, 0, (uint64_t)i) - true_mean;
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  assert_near(cv_quality_truth(quality, 0), true_mean, 1e-9);
  assert_near(sum / DRAWS, 0, 5 * sqrt(true_variance / DRAWS) + 1e-6);
  double of_squares = fourths / DRAWS - true_variance * true_variance;
  assert_near(squares / DRAWS, true_variance, 5 * sqrt(fmax(of_squares, 0) / DRAWS) + 1e-6);
  cv_quality_free(quality);
}

/* Moments of the normal clipped to [0,1] by the midpoint rule, an independent method. */
static void window_by_sum(double mean, double sd, double *ret_inside, double *ret_first, double *ret_second) {
  double inside = 0, first = 0, second = 0;
  for (int i = 0; i < STEPS; i++) {
    double x = (i + 0.5) / STEPS, z = (x - mean) / sd;
    double p = exp(-z * z / 2) / (sd * sqrt(2 * M_PI)) / STEPS;
    inside += p;
    first += p * x;
    second += p * x * x;
  }
  *ret_inside = inside;
  *ret_first = first;
  *ret_second = second;
}

static void test_bernoulli(void **state) {
  check_law("bernoulli", 0.3, nan(""), 0.3, 0.21);
  check_law("bernoulli", 0, nan(""), 0, 0);
  check_law("bernoulli", 1, nan(""), 1, 0);
}

static void test_beta(void **state) {
  const double cases[][2] = {{0.5, 2}, {0.2, 10}, {0.9, 0.5}, {0.5, 0.01}, {0.7, 1000}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    double mean = cases[i][0], both = cases[i][1];
    check_law("beta", mean, both, mean, mean * (1 - mean) / (both + 1));
  }
  check_law("beta", 0, 3, 0, 0);
  check_law("beta", 1, 3, 1, 0);
}

static const double normals[][2] = {{0.5, 0.1}, {0.9, 0.1}, {0, 0.3}, {1, 0.05}, {0.3, 0.39}, {0.3, 0.41}, {0.7, 10}};

static void test_clipped_normal(void **state) {
  for (size_t i = 0; i < CV_COUNT(normals); i++) {
    double mean = normals[i][0], sd = normals[i][1], inside, first, second;
    window_by_sum(mean, sd, &inside, &first, &second);
    double above = erfc((1 - mean) / sd / M_SQRT2) / 2;
    double expected = first + above;
    check_law("clipped-normal", mean, sd, expected, second + above - expected * expected);
  }
}

static void test_truncated_normal(void **state) {
  for (size_t i = 0; i < CV_COUNT(normals); i++) {
    double mean = normals[i][0], sd = normals[i][1], inside, first, second;
    window_by_sum(mean, sd, &inside, &first, &second);
    double expected = first / inside;
    check_law("truncated-normal", mean, sd, expected, second / inside - expected * expected);
  }
}

/* The formulas must keep their digits where the window is a small part of the law, or the law a small part of the
 * window. */
static void test_truth_is_accurate_at_extremes(void **state) {
  const struct {
    const char *model;
    double mean, sd, expected;
  } cases[] = {
      {"truncated-normal", 0.2, 1e8, 0.5},  {"clipped-normal", 0.2, 1e8, 0.5 - 0.3 / (1e8 * sqrt(2 * M_PI))},
      {"truncated-normal", 0.2, 1e-9, 0.2}, {"clipped-normal", 0.2, 1e-9, 0.2},
      {"truncated-normal", 0.2, 0, 0.2},    {"clipped-normal", 1, 0, 1},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_quality *quality = source(cases[i].model, cases[i].mean, cases[i].sd, 1);
    assert_near(cv_quality_truth(quality, 1), cases[i].expected, 1e-8);
    (void)score(quality, 0, 5);
    cv_quality_free(quality);
  }
}

/* Every row of the table: the mean of its scores is the truth that a campaign reports. */
static void test_every_law_has_the_mean_that_it_says(void **state) {
  static const double mean[] = {0, 0.1, 0.5, 0.93, 1}, spread[] = {0.05, 0.3, 2};
  for (size_t m = 0; cv_quality_model_at(m) != NULL; m++) {
    for (size_t i = 0; i < CV_COUNT(mean) * CV_COUNT(spread); i++) {
      struct cv_quality *quality =
          source(cv_quality_model_at(m)->name, mean[i / CV_COUNT(spread)], spread[i % CV_COUNT(spread)], 4);
      double first = 0, second = 0, truth = cv_quality_truth(quality, 0);
      for (uint64_t place = 0; place < 20000; place++) {
        double off = score(quality, 0, place) - truth;
        first += off;
        second += off * off;
      }
      assert_near(first / 20000, 0, 4.5 * sqrt(second) / 20000 + 1e-6);
      cv_quality_free(quality);
    }
  }
}

static void test_a_score_depends_on_seed_arm_and_place_alone(void **state) {
  for (size_t m = 0; cv_quality_model_at(m) != NULL; m++) {
    const char *name = cv_quality_model_at(m)->name;
    struct cv_quality *a = source(name, 0.5, 0.3, 7), *b = source(name, 0.5, 0.3, 7), *c = source(name, 0.5, 0.3, 8);
    int other_arm = 0, other_seed = 0;
    for (uint64_t place = 1000; place-- > 0;) {
      double backwards = score(a, 0, place);
      assert_true(backwards == score(b, 0, place));
      other_arm += backwards != score(a, 1, place);
      other_seed += backwards != score(c, 0, place);
    }
    for (uint64_t place = 0; place < 1000; place++) {
      assert_true(score(a, 0, place) == score(b, 0, place));
    }
    assert_true(other_arm > 300 && other_seed > 300);
    cv_quality_free(a);
    cv_quality_free(b);
    cv_quality_free(c);
  }
}

static void refused(const char *model, double mean, double spread, const char *line) {
  const struct cv_quality_item item[] = {{0.5, 1}, {mean, spread}};
  struct cv_quality *quality = NULL;
  struct cv_why why = {0};
  assert_int_equal(cv_quality_new(cv_quality_model_find(model), item, 2, 1, &quality, &why), CV_ERR_INVALID);
  assert_null(quality);
  assert_string_equal(why.text, line);
}

static void test_bad_parameters_are_named(void **state) {
  refused("bernoulli", 1.5, nan(""), "item 2 has mean 1.5; expected 0 to 1");
  refused("bernoulli", nan(""), nan(""), "item 2 has mean nan; expected 0 to 1");
  refused("beta", 0.5, 0, "item 2 has concentration 0; expected a number above 0");
  refused("clipped-normal", 0.5, -1, "item 2 has standard deviation -1; expected a number of at least 0");
  refused("truncated-normal", 0.5, HUGE_VAL, "item 2 has standard deviation inf; expected a number of at least 0");
  assert_null(cv_quality_model_find("gaussian"));
}

static void test_instance_follows_the_paper(void **state) {
  enum { ITEMS = 20000 };
  static double mean[ITEMS], more[ITEMS + 1];
  cv_quality_draw_instance(3, 0.5, 10, ITEMS, mean);
  cv_quality_draw_instance(3, 0.5, 10, ITEMS + 1, more);
  assert_memory_equal(mean, more, sizeof(mean));
  int at_ends = 0;
  for (int i = 0; i < ITEMS; i++) {
    assert_true(mean[i] >= 0 && mean[i] <= 1);
    at_ends += mean[i] == 0 || mean[i] == 1;
  }
  /* 2 Phi(-0.5 / sqrt 10) = 0.8744 of the items land on an end */
  assert_near((double)at_ends / ITEMS, erfc(0.5 / sqrt(20)), 0.012);
  cv_quality_draw_instance(4, 0.25, 0, 2, more);
  assert_true(more[0] == 0.25 && more[1] == 0.25);
}

/* A campaign's word for a law, or an adversary, is its class's name, and the class accepts what the campaign may
 * set. */
static void test_classes_are_those_of_the_rows(void **state) {
#define LAW(file, kind, word, usual, may_be_zero) {word, may_be_zero},
#define ADVERSARY(file, word)                     word,
  static const struct {
    const char *word;
    bool may_be_zero;
  } laws[] = {CV_REWARD_LAWS(LAW)};
  static const char *const adversaries[] = {CV_ADVERSARIES(ADVERSARY)};
  (void)state;
  for (size_t i = 0; i < CV_COUNT(laws); i++) {
    const struct cv_quality_model *model = cv_quality_model_at(i);
    assert_string_equal(model->name, laws[i].word);
    assert_true(model->spread == NULL || model->spread_zero || !laws[i].may_be_zero);
  }
  for (size_t i = 0; i < CV_COUNT(adversaries); i++) {
    assert_string_equal(cv_adversary_at(i)->name, adversaries[i]);
  }
  assert_null(cv_quality_model_at(CV_COUNT(laws)));
  assert_null(cv_adversary_at(CV_COUNT(adversaries)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_classes_are_those_of_the_rows),
      cmocka_unit_test(test_bernoulli),
      cmocka_unit_test(test_beta),
      cmocka_unit_test(test_clipped_normal),
      cmocka_unit_test(test_truncated_normal),
      cmocka_unit_test(test_truth_is_accurate_at_extremes),
      cmocka_unit_test(test_every_law_has_the_mean_that_it_says),
      cmocka_unit_test(test_a_score_depends_on_seed_arm_and_place_alone),
      cmocka_unit_test(test_bad_parameters_are_named),
      cmocka_unit_test(test_instance_follows_the_paper),
  };
  return cmocka_run_group_tests_name("models", tests, NULL, NULL);
}
