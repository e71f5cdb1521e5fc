/* SPDX-License-Identifier: Apache-2.0 */
/* The laws of the privatizers: parameters, permitted tokens, costs, and the way back to the mean score. */
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
#include "common/base/local.h"
#include "tests/support/near.h"

struct setting {
  const char *key;
  double number;
  const char *text;
};

static struct cv_choice choose(const char *name, const struct setting *settings) {
  struct cv_choice choice = {0};
  (void)snprintf(choice.name, sizeof(choice.name), "%s", name);
  for (; settings != NULL && settings->key != NULL; settings++) {
    assert_int_equal(settings->text != NULL ? cv_params_set_text(&choice.params, settings->key, settings->text)
                                            : cv_params_set_number(&choice.params, settings->key, settings->number),
                     CV_OK);
  }
  return choice;
}

#define SETTINGS(...) ((const struct setting[]){__VA_ARGS__, {NULL, 0, NULL}})

static struct cv_local law_of(const char *name, uint32_t arms, const struct setting *settings) {
  struct cv_choice choice = choose(name, settings);
  struct cv_local law;
  struct cv_why why = {0};
  if (cv_local_init(&choice, arms, &law, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return law;
}

static void refused(const char *name, uint32_t arms, const struct setting *settings, const char *text) {
  struct cv_choice choice = choose(name, settings);
  struct cv_local law;
  struct cv_why why = {0};
  assert_int_not_equal(cv_local_init(&choice, arms, &law, &why), CV_OK);
  if (strstr(why.text, text) == NULL) {
    fail_msg("\"%s\" lacks \"%s\"", why.text, text);
  }
}

static void none_promises_nothing(void **state) {
  struct cv_local law = law_of("none", 3, NULL);
  assert_true(law.epsilon_micro == CV_EPSILON_NONE);
  assert_true(cv_local_sends(&law, 0) && cv_local_sends(&law, 17) && cv_local_sends(&law, CV_GRID));
  assert_false(cv_local_sends(&law, -1) || cv_local_sends(&law, CV_GRID + 1));
  struct cv_feedback feedback = cv_local_feedback(&law, 2);
  assert_true(feedback.offset == 0 && feedback.slope == 1 && feedback.scale == 0);
}

static void a_response_is_one_of_two_values(void **state) {
  struct cv_local law = law_of("randomized-response", 3, SETTINGS({"epsilon", 2, NULL}));
  assert_true(cv_local_sends(&law, 0) && cv_local_sends(&law, CV_GRID));
  assert_false(cv_local_sends(&law, 1) || cv_local_sends(&law, -1) || cv_local_sends(&law, 2 * CV_GRID));
  assert_int_equal(law.epsilon_micro, 2000000);
}

static void keeping_follows_epsilon_and_delta(void **state) {
  static const double epsilon[] = {0.000001, 0.5, 1, 2, 30, 4000}, delta[] = {0, 1e-12, 0.001, 0.25};
  for (size_t i = 0; i < CV_COUNT(epsilon); i++) {
    for (size_t j = 0; j < CV_COUNT(delta); j++) {
      double e = exp(-epsilon[i]);
      double optimal = (1 + delta[j] * e) / (1 + e), printed = (1 + delta[j] * e) / (1 + e + delta[j] * e);
      struct cv_local law =
          law_of("randomized-response", 1, SETTINGS({"epsilon", epsilon[i], NULL}, {"delta", delta[j], NULL}));
      struct cv_feedback feedback = cv_local_feedback(&law, 0);
      assert_near(feedback.offset, 1 - optimal, 1e-12);
      assert_near(feedback.slope, 2 * optimal - 1, 1e-12);
      assert_true(feedback.slope > 0);
      /* The optimum uses (epsilon, delta) exactly; the printed rule leaves a margin. */
      assert_true(epsilon[i] > 2 || fabs(exp(epsilon[i]) * (1 - optimal) + delta[j] - optimal) < 1e-12);
      law = law_of("randomized-response", 1,
                   SETTINGS({"epsilon", epsilon[i], NULL}, {"delta", delta[j], NULL}, {"rule", 0, "printed"}));
      assert_near(cv_local_feedback(&law, 0).slope, 2 * printed - 1, 1e-12);
      assert_true(printed <= optimal);
    }
  }
}

static void a_matrix_costs_its_worst_ratio(void **state) {
  static const struct {
    double p00, p11, ratio;
  } cases[] = {{0.75, 0.75, 3}, {0.9, 0.6, 6}, {0.6, 0.9, 6}, {0.1, 0.3, 7}, {0.99, 0.5, 50}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_local law =
        law_of("randomized-response", 7, SETTINGS({"p00", cases[i].p00, NULL}, {"p11", cases[i].p11, NULL}));
    double micro = 1e6 * log(cases[i].ratio);
    assert_true((double)law.epsilon_micro >= micro && (double)law.epsilon_micro < micro + 1);
    struct cv_feedback feedback = cv_local_feedback(&law, 6);
    assert_near(feedback.offset, 1 - cases[i].p00, 1e-12);
    assert_near(feedback.slope, cases[i].p00 + cases[i].p11 - 1, 1e-12);
  }
  struct cv_local eased =
      law_of("randomized-response", 1, SETTINGS({"p00", 0.75, NULL}, {"p11", 0.75, NULL}, {"delta", 0.25, NULL}));
  double micro = 1e6 * log(2);
  assert_true((double)eased.epsilon_micro >= micro && (double)eased.epsilon_micro < micro + 1);
}

/* What the law guarantees for certain: delta does not reduce the largest ratio. */
static void a_law_with_delta_has_an_epsilon_without(void **state) {
  static const struct {
    struct setting set[4];
    uint64_t epsilon_micro;
    double ratio;
  } cases[] = {
      {{{"epsilon", 0.1, NULL}, {"delta", 0.5, NULL}}, 100000, (1.1051709180756477 + 0.5) / 0.5},
      {{{"epsilon", 0.1, NULL}, {"delta", 0.5, NULL}, {"rule", 0, "printed"}}, 100000, 1.1051709180756477 + 0.5},
      {{{"epsilon", 1e-6, NULL}, {"delta", 0.999999, NULL}}, 1, (1.000001 + 0.999999) / 0.000001},
      {{{"p00", 0.75, NULL}, {"p11", 0.75, NULL}, {"delta", 0.25, NULL}}, 693148, 3},
      {{{"p00", 0.9, NULL}, {"p11", 0.9, NULL}, {"delta", 0.9, NULL}}, 1, 9},
      {{{"p00.1", 0.8, NULL}, {"p11.1", 0.8, NULL}, {"delta", 0.7, NULL}}, 1, 4},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct setting set[5] = {{NULL, 0, NULL}};
    memcpy(set, cases[i].set, sizeof(cases[i].set));
    struct cv_local law = law_of("randomized-response", 1, set);
    double micro = 1e6 * log(cases[i].ratio);
    assert_int_equal(law.epsilon_micro, cases[i].epsilon_micro);
    assert_true((double)law.pure_micro >= micro - 1e-6 && (double)law.pure_micro < micro + 1.1);
  }
  assert_true(law_of("none", 1, NULL).pure_micro == CV_EPSILON_NONE);
  assert_int_equal(law_of("laplace", 1, SETTINGS({"epsilon", 3, NULL})).pure_micro, 3000000);
  assert_int_equal(law_of("randomized-response", 1, SETTINGS({"epsilon", 3, NULL})).pure_micro, 3000000);
}

static void every_arm_may_have_its_own_matrix(void **state) {
  struct cv_local law =
      law_of("randomized-response", 2,
             SETTINGS({"p00.1", 0.6, NULL}, {"p11.1", 0.6, NULL}, {"p00.2", 0.9, NULL}, {"p11.2", 0.8, NULL}));
  assert_near(cv_local_feedback(&law, 0).slope, 0.2, 1e-12);
  assert_near(cv_local_feedback(&law, 1).slope, 0.7, 1e-12);
  assert_int_equal(law.epsilon_micro, (uint64_t)ceil(1e6 * log(8)));
  assert_int_equal(cv_local_matrix(&law, 1)->p11_micro, 800000);
}

static void laplace_reaches_forty_scales_beyond(void **state) {
  struct cv_local law = law_of("laplace", 1, SETTINGS({"epsilon", 3, NULL}));
  int64_t bound = (40 * CV_GRID + 2) / 3;
  assert_int_equal(law.low, -bound);
  assert_int_equal(law.high, CV_GRID + bound);
  assert_true(cv_local_sends(&law, -bound) && cv_local_sends(&law, CV_GRID + bound));
  assert_false(cv_local_sends(&law, -bound - 1) || cv_local_sends(&law, CV_GRID + bound + 1));
  struct cv_feedback feedback = cv_local_feedback(&law, 0);
  assert_true(feedback.offset == 0 && feedback.slope == 1);
  assert_near(feedback.scale, 1.0 / 3, 1e-12);
  law = law_of("laplace", 1, SETTINGS({"epsilon", 1e-6, NULL}));
  assert_true(law.high > 0 && law.high < INT64_C(1) << 46);
}

/* With epsilon 1 if the privatizer has that parameter, else without parameters. */
static struct cv_local usual_law(const char *name) {
  struct cv_choice choice = choose(name, SETTINGS({"epsilon", 1, NULL}));
  struct cv_local law;
  return cv_local_init(&choice, 2, &law, NULL) == CV_OK ? law : law_of(name, 2, NULL);
}

/* The table's row of a privatizer agrees with its law. */
static void tokens_are_bounded_as_the_table_says(void **state) {
  (void)state;
  for (size_t i = 0; cv_local_names[i] != NULL; i++) {
    enum cv_local_kind kind = cv_local_find(cv_local_names[i]);
    assert_int_equal(kind, i);
    const struct cv_local law = usual_law(cv_local_names[i]);
    assert_int_equal(law.kind, kind);
    assert_int_equal(cv_local_is_bounded(kind), law.low >= 0 && law.high <= CV_GRID);
  }
  assert_int_equal(cv_local_find("rot13"), CV_LOCAL_KINDS);
  assert_true(cv_local_is_bounded(CV_LOCAL_KINDS));
}

static void what_makes_no_sense_is_refused(void **state) {
  static const char *const rr = "randomized-response", *const either = "expected either epsilon, or p00 and p11";
  refused("rot13", 1, NULL, "unknown privatizer \"rot13\"; expected one of none, randomized-response");
  for (size_t i = 0; cv_local_names[i] != NULL; i++) {
    refused("rot13", 1, NULL, cv_local_names[i]);
  }
  refused("", 1, NULL, "unknown privatizer \"\"");
  refused("none", 1, SETTINGS({"epsilon", 1, NULL}), "privatizer none: unknown key \"epsilon\"");
  refused("laplace", 1, NULL, "privatizer laplace: missing epsilon");
  refused("laplace", 1, SETTINGS({"epsilon", 0, NULL}), "epsilon is 0; expected a number");
  refused("laplace", 1, SETTINGS({"epsilon", 0.1234567, NULL}), "epsilon is 0.1234567; expected at most 6 decimals");
  refused("laplace", 1, SETTINGS({"epsilon", (double)NAN, NULL}), "epsilon is");
  refused(rr, 1, NULL, either);
  refused(rr, 1, SETTINGS({"epsilon", 1, NULL}, {"p00", 0.9, NULL}, {"p11", 0.9, NULL}), either);
  refused(rr, 1, SETTINGS({"epsilon", 1, NULL}, {"p00.1", 0.9, NULL}, {"p11.1", 0.9, NULL}), either);
  refused(rr, 1, SETTINGS({"epsilon", 1, NULL}, {"delta", 1, NULL}), "delta is 1; expected");
  refused(rr, 1, SETTINGS({"epsilon", 1, NULL}, {"delta", 1e-13, NULL}), "expected at most 12 decimals");
  /* The largest number below 1 becomes 1 in units of 10^-12; such a token is the score itself. */
  refused(rr, 1, SETTINGS({"epsilon", 1e-6, NULL}, {"delta", 0.9999999999999999, NULL}),
          "expected at most 12 decimals");
  refused(rr, 1, SETTINGS({"epsilon", 1, NULL}, {"rule", 0, "best"}), "rule is \"best\"; expected optimal or printed");
  refused(rr, 1, SETTINGS({"p00", 0.9, NULL}), "p11 is not a probability strictly between 0 and 1");
  refused(rr, 1, SETTINGS({"p00", 1, NULL}, {"p11", 0.9, NULL}), "p00 is 1; expected");
  refused(rr, 1, SETTINGS({"p00", 0.9, NULL}, {"p11", 0.1, NULL}), "p00 + p11 is 1");
  refused(rr, 1, SETTINGS({"p00", 0.9999999, NULL}, {"p11", 0.9, NULL}), "p00 is not a probability");
  refused(rr, 1, SETTINGS({"p00", 0.9, NULL}, {"p11", 0.9, NULL}, {"rule", 0, "printed"}), "expected it with epsilon");
  refused(rr, 2, SETTINGS({"p00.1", 0.9, NULL}, {"p11.1", 0.9, NULL}), "missing p00.2 or p11.2");
  refused(rr, 2, SETTINGS({"p00.3", 0.9, NULL}), "p00.3: expected an arm from 1 to 2");
  refused(rr, 99, SETTINGS({"p00.16", 0.9, NULL}), "p00.16: expected an arm from 1 to 99, and arms up to 15 only");
  refused(rr, 2, SETTINGS({"p00.0", 0.9, NULL}), "p00.0: expected an arm");
  refused(rr, 2, SETTINGS({"p00.1x", 0.9, NULL}), "p00.1x: expected an arm");
  refused(rr, 2, SETTINGS({"p11.1", 0, "high"}), "p11.1 is not a probability");
  refused(rr, 16, SETTINGS({"p00.1", 0.9, NULL}, {"p11.1", 0.9, NULL}), "; expected both for each of the 16");
}

static void an_entry_is_there_once(void **state) {
  struct cv_choice choice = choose("randomized-response", SETTINGS({"p00.1", 0.6, NULL}, {"p11.1", 0.6, NULL}));
  struct cv_local law;
  struct cv_why why = {0};
  choice.params.item[2] = choice.params.item[0]; /* as a peer could send it */
  choice.params.count = 3;
  assert_int_equal(cv_local_init(&choice, 1, &law, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, "p00.1 is given twice"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(none_promises_nothing),
      cmocka_unit_test(a_response_is_one_of_two_values),
      cmocka_unit_test(keeping_follows_epsilon_and_delta),
      cmocka_unit_test(a_matrix_costs_its_worst_ratio),
      cmocka_unit_test(a_law_with_delta_has_an_epsilon_without),
      cmocka_unit_test(every_arm_may_have_its_own_matrix),
      cmocka_unit_test(laplace_reaches_forty_scales_beyond),
      cmocka_unit_test(tokens_are_bounded_as_the_table_says),
      cmocka_unit_test(what_makes_no_sense_is_refused),
      cmocka_unit_test(an_entry_is_there_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
