/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens have the law of their privatizer's parameters, and no certain value reveals a score. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "common/base/grid.h"
#include "tests/support/near.h"
#include "worker/privatizer/privatizer.h"

enum { RUNS = 200000 };

static struct cv_privatizer *make(const char *name, uint32_t arms, const char *const *keys, const double *values) {
  struct cv_choice choice = {0};
  struct cv_privatizer *privatizer = NULL;
  struct cv_why why = {0};
  (void)snprintf(choice.name, sizeof(choice.name), "%s", name);
  for (; keys != NULL && *keys != NULL; keys++, values++) {
    assert_int_equal(strcmp(*keys, "rule") == 0 ? cv_params_set_text(&choice.params, *keys, "printed")
                                                : cv_params_set_number(&choice.params, *keys, *values),
                     CV_OK);
  }
  if (cv_privatizer_new(&choice, arms, &privatizer, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return privatizer;
}

/* How often the token is CV_GRID; it must be that or 0. */
static double ones(const struct cv_privatizer *privatizer, uint32_t arm, int64_t score, uint64_t seed) {
  struct cv_rng_seeded rng;
  uint64_t count = 0;
  cv_rng_seeded_init(&rng, seed, CV_RNG_PRIVATIZER, arm, (uint64_t)score);
  for (int i = 0; i < RUNS; i++) {
    int64_t token = cv_privatizer_apply(privatizer, arm, score, &rng.rng);
    assert_true(token == 0 || token == CV_GRID);
    count += token == CV_GRID;
  }
  return (double)count / RUNS;
}

static void check_share(double share, double expected) {
  assert_near(share, expected, 3.5 * sqrt(expected * (1 - expected) / RUNS) + 1e-12);
}

static void test_none_is_the_score(void **state) {
  struct cv_privatizer *privatizer = make("none", 2, NULL, NULL);
  for (int64_t score = 0; score <= CV_GRID; score += 12345) {
    assert_int_equal(cv_privatizer_apply(privatizer, 1, score, NULL), score);
  }
  cv_privatizer_free(privatizer);
}

static void test_a_bit_is_kept_as_often_as_said(void **state) {
  static const double epsilon[] = {0.1, 1, 2, 4.5}, delta[] = {0, 0.2};
  for (size_t i = 0; i < CV_COUNT(epsilon); i++) {
    for (size_t j = 0; j < CV_COUNT(delta); j++) {
      double e = exp(epsilon[i]), d = delta[j];
      struct cv_privatizer *optimal =
          make("randomized-response", 1, (const char *const[]){"epsilon", "delta", NULL}, (double[]){epsilon[i], d});
      struct cv_privatizer *printed =
          make("randomized-response", 1, (const char *const[]){"epsilon", "delta", "rule", NULL},
               (double[]){epsilon[i], d, 0});
      check_share(ones(optimal, 0, CV_GRID, 1), (e + d) / (1 + e));
      check_share(ones(optimal, 0, 0, 2), 1 - (e + d) / (1 + e));
      check_share(ones(printed, 0, CV_GRID, 3), (e + d) / (1 + e + d));
      check_share(ones(printed, 0, 0, 4), 1 / (1 + e + d));
      cv_privatizer_free(optimal);
      cv_privatizer_free(printed);
    }
  }
}

/* The mean token is on the line that the policy inverts, also for scores in between. */
static void test_means_lie_on_the_line(void **state) {
  struct cv_privatizer *privatizer =
      make("randomized-response", 2, (const char *const[]){"p00.1", "p11.1", "p00.2", "p11.2", NULL},
           (double[]){0.9, 0.7, 0.2, 0.4});
  static const double score[] = {0, 0.25, 0.5, 0.99, 1};
  for (uint32_t arm = 0; arm < 2; arm++) {
    struct cv_feedback feedback = cv_local_feedback(&privatizer->law, arm);
    assert_near(feedback.slope, arm == 0 ? 0.6 : -0.4, 1e-12);
    for (size_t i = 0; i < CV_COUNT(score); i++) {
      check_share(ones(privatizer, arm, cv_grid_from(score[i]), 5), feedback.offset + feedback.slope * score[i]);
    }
  }
  cv_privatizer_free(privatizer);
}

static void test_laplace_has_the_mean_and_variance_of_its_law(void **state) {
  static const double epsilon[] = {0.05, 1, 8};
  for (size_t i = 0; i < CV_COUNT(epsilon); i++) {
    struct cv_privatizer *privatizer = make("laplace", 1, (const char *const[]){"epsilon", NULL}, &epsilon[i]);
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, 6, CV_RNG_PRIVATIZER, i, 0);
    double first = 0, second = 0, b = 1 / epsilon[i];
    for (int run = 0; run < RUNS; run++) {
      int64_t token = cv_privatizer_apply(privatizer, 0, CV_GRID / 4, &rng.rng);
      assert_true(cv_local_sends(&privatizer->law, token));
      double off = cv_grid_to(token) - 0.25;
      first += off;
      second += off * off;
    }
    assert_near(first / RUNS, 0, 3.5 * sqrt(2 * b * b / RUNS));
    assert_near(second / RUNS, 2 * b * b, 3.5 * sqrt(20 * b * b * b * b / RUNS)); /* 24 b^4 - (2 b^2)^2 */
    cv_privatizer_free(privatizer);
  }
}

/* Clamping at a narrower range than the real one, so that it is visible. */
static void test_laplace_never_leaves_its_range(void **state) {
  static const double epsilon = 4000;
  struct cv_privatizer *privatizer = make("laplace", 1, (const char *const[]){"epsilon", NULL}, &epsilon);
  struct cv_local narrow = privatizer->law;
  narrow.low = -3;
  narrow.high = CV_GRID + 3;
  privatizer->law = narrow;
  struct cv_rng_seeded rng;
  bool touched[2] = {false, false};
  cv_rng_seeded_init(&rng, 7, CV_RNG_PRIVATIZER, 0, 0);
  for (int run = 0; run < 1000; run++) {
    int64_t low = cv_privatizer_apply(privatizer, 0, 0, &rng.rng),
            high = cv_privatizer_apply(privatizer, 0, CV_GRID, &rng.rng);
    assert_true(low >= -3 && high <= CV_GRID + 3);
    touched[0] = touched[0] || low == -3;
    touched[1] = touched[1] || high == CV_GRID + 3;
  }
  assert_true(touched[0] && touched[1]);
  cv_privatizer_free(privatizer);
}

/* A privatizer with epsilon 1, or without parameters if it has no epsilon. */
static struct cv_privatizer *make_usual(const char *name) {
  struct cv_choice choice = {0};
  struct cv_privatizer *privatizer;
  (void)snprintf(choice.name, sizeof(choice.name), "%s", name);
  assert_int_equal(cv_params_set_number(&choice.params, "epsilon", 1), CV_OK);
  return cv_privatizer_new(&choice, 2, &privatizer, NULL) == CV_OK ? privatizer : make(name, 2, NULL, NULL);
}

/* Every row of the table: its law allows each token, and inverts their mean to the score. */
static void test_every_privatizer_draws_what_its_law_says(void **state) {
  static const double score[] = {0, 0.25, 0.5, 1};
  for (size_t p = 0; cv_privatizer_at(p) != NULL; p++) {
    struct cv_privatizer *privatizer = make_usual(cv_local_name(cv_privatizer_at(p)->kind));
    for (size_t i = 0; i < CV_COUNT(score); i++) {
      struct cv_rng_seeded rng;
      cv_rng_seeded_init(&rng, 8, CV_RNG_PRIVATIZER, p, i);
      struct cv_feedback feedback = cv_local_feedback(&privatizer->law, 1);
      double expected = feedback.offset + feedback.slope * score[i], first = 0, second = 0;
      for (int run = 0; run < RUNS; run++) {
        int64_t token = cv_privatizer_apply(privatizer, 1, cv_grid_from(score[i]), &rng.rng);
        assert_true(cv_local_sends(&privatizer->law, token));
        double off = cv_grid_to(token) - expected;
        first += off;
        second += off * off;
      }
      assert_near(first / RUNS, 0, 4 * sqrt(second) / RUNS + 1e-9);
    }
    cv_privatizer_free(privatizer);
  }
}

/* The ratio of a bit's probabilities for two scores is what a token reveals; it equals the law's, and is no more. */
static void test_bits_tell_what_their_law_says(void **state) {
  for (size_t p = 0; cv_privatizer_at(p) != NULL; p++) {
    struct cv_privatizer *privatizer = make_usual(cv_local_name(cv_privatizer_at(p)->kind));
    if (privatizer->law.bits) {
      double of_one = ones(privatizer, 0, CV_GRID, 9), of_zero = ones(privatizer, 0, 0, 10);
      double told = fmax(log(of_one / of_zero), log((1 - of_zero) / (1 - of_one)));
      assert_near(told, (double)privatizer->law.epsilon_micro / 1e6, 0.03); /* 5 standard errors or more */
    }
    cv_privatizer_free(privatizer);
  }
}

static void test_every_law_has_a_privatizer(void **state) {
  for (int kind = 0; kind < CV_LOCAL_KINDS; kind++) {
    const struct cv_privatizer_class *class = cv_privatizer_find(cv_local_name((enum cv_local_kind)kind));
    assert_non_null(class);
    assert_int_equal(class->kind, kind);
    assert_true(strlen(class->guarantee) > 0);
  }
  assert_null(cv_privatizer_at(CV_LOCAL_KINDS));
  assert_null(cv_privatizer_find("rot13"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_none_is_the_score),
      cmocka_unit_test(test_a_bit_is_kept_as_often_as_said),
      cmocka_unit_test(test_means_lie_on_the_line),
      cmocka_unit_test(test_laplace_has_the_mean_and_variance_of_its_law),
      cmocka_unit_test(test_laplace_never_leaves_its_range),
      cmocka_unit_test(test_every_privatizer_draws_what_its_law_says),
      cmocka_unit_test(test_bits_tell_what_their_law_says),
      cmocka_unit_test(test_every_law_has_a_privatizer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
