/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a bandit's or a recruitment's campaign, as text and as JSON. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>
#include <string.h>

#include "deploy/launcher/pulls.h"
#include "deploy/launcher/result_json.h"
#include "deploy/launcher/table.h"
#include "tests/support/near.h"

enum { ARMS = 3 };

static const char *const names[ARMS] = {"Ann", "Bo", "Cy"};
static const double means[ARMS] = {.5, .9, .2};

static void make(struct cv_outcome *outcome, enum cv_policy_kind kind, struct cv_spec *spec) {
  struct cv_standing standing[] = {{.arm = 0, .rank_class = 2, .tokens = 10, .mean = .55},
                                   {.arm = 1, .rank_class = 1, .tokens = 80, .mean = .88},
                                   {.arm = 2, .rank_class = 2, .tokens = 10, .mean = .25}};
  const struct cv_finished finished = {.progress = {.name = "pool",
                                                    .arms = ARMS,
                                                    .tokens = 100,
                                                    .tokens_limit = 1000,
                                                    .plans = 7,
                                                    .elapsed_ms = 1000,
                                                    .paid_micro = 270000000},
                                       .standings = ARMS,
                                       .standing = standing};
  const struct cv_outcome_known known = {.kind = kind, .spec = spec, .name = names, .mean = means};
  assert_int_equal(cv_outcome_init(outcome, &finished, &known), CV_OK);
}

static void print_into(const struct cv_outcome *outcome, char *text, size_t size) {
  FILE *to = fmemopen(text, size, "w");
  assert_non_null(to);
  cv_table_print(outcome, to);
  (void)fclose(to);
}

static void test_a_bandit_is_measured_against_its_best_arm(void **state) {
  struct cv_outcome outcome;
  struct cv_spec spec = {.arms = ARMS, .epsilon_micro = 1000000};
  make(&outcome, CV_POLICY_BANDIT, &spec);
  struct cv_pulls_sums sums = cv_pulls_sums(&outcome);
  assert_int_equal(sums.pulls, 100);
  assert_int_equal(sums.best, 1);
  assert_near(sums.reward, 10 * .5 + 80 * .9 + 10 * .2, 1e-9);
  assert_near(sums.regret, 100 * .9 - sums.reward, 1e-9);
  assert_int_equal(outcome.order[0], 1);
  char text[2000];
  print_into(&outcome, text, sizeof(text));
  assert_non_null(strstr(text, "Bo"));
  assert_non_null(strstr(text, "regret      11"));
  assert_null(strstr(text, "paid"));
  assert_null(strstr(text, "active"));
  cv_outcome_fini(&outcome);
}

/* Two rounds of arm 1 (.38 each), one of arm 3 (1), one of arm 2 (1), which would have had two of the four if it
 * were the only one played. The last plan was not released. */
static void test_an_adversary_is_looked_back_at(void **state) {
  const struct cv_adversary adversary = {
      .class = cv_adversary_find("deterministic"), .arms = ARMS, .best = 1, .rounds = 100};
  struct cv_want first[] = {{0, 2}}, second[] = {{2, 1}, {1, 1}}, third[] = {{1, 50}};
  struct cv_plan plans[] = {{1, 1, first}, {2, 2, second}, {3, 1, third}};
  struct cv_export export = {.progress = {.releases = 3}, .plan = plans, .plans = 3};
  struct cv_outcome outcome;
  struct cv_spec spec = {.arms = ARMS};
  make(&outcome, CV_POLICY_BANDIT, &spec);
  outcome.hindsight = cv_hindsight_of(&adversary, &export);
  assert_int_equal(outcome.hindsight.rounds, 4);
  assert_int_equal(outcome.hindsight.arm, 1);
  struct cv_pulls_sums sums = cv_pulls_sums(&outcome);
  assert_near(sums.reward, .38 + .38 + 1 + 1, 1e-9);
  assert_near(sums.regret, 2 - sums.reward, 1e-9);
  char text[2000];
  print_into(&outcome, text, sizeof(text));
  assert_non_null(strstr(text, "regret      -0.76 against Bo at every round, the best in hindsight"));
  cv_outcome_fini(&outcome);
  /* With costs of switching the third and the fourth round give nothing, and the best arm's four keep theirs. */
  struct cv_adversary dear = adversary;
  dear.class = cv_adversary_find("switching");
  dear.memory = 1;
  struct cv_hindsight sum = cv_hindsight_of(&dear, &export);
  assert_near(sum.gained, cv_adversary_total(&dear, 0, 2), 1e-12);
  assert_near(sum.best, cv_adversary_total(&dear, 1, 4), 1e-12);
}

/* Densities .25, .3, .2 and a budget of 10: Bo three times (9), then only Cy fits, once. */
static void test_a_recruitment_is_measured_against_the_densest(void **state) {
  struct cv_outcome outcome;
  uint64_t costs[ARMS] = {2000000, 3000000, 1000000};
  struct cv_spec spec = {.arms = ARMS, .cost_micro = costs, .budget_micro = 10000000};
  make(&outcome, CV_POLICY_RECRUITMENT, &spec);
  struct cv_pulls_sums sums = cv_pulls_sums(&outcome);
  assert_int_equal(sums.spent_micro, UINT64_C(1000000) * (20 + 240 + 10));
  assert_near(sums.regret, 3 * .9 + .2 - sums.reward, 1e-9);
  json_t *result = cv_result_json(&outcome, "dpu");
  assert_non_null(result);
  assert_near(json_real_value(json_object_get(result, "budget")), 10, 1e-9);
  assert_near(json_real_value(json_object_get(result, "spent")), 270, 1e-9);
  const json_t *first = json_array_get(json_object_get(result, "arms"), 0);
  assert_string_equal(json_string_value(json_object_get(first, "name")), "Bo");
  assert_near(json_real_value(json_object_get(first, "paid")), 240, 1e-9);
  assert_null(json_object_get(result, "classes"));
  json_decref(result);
  /* With two requests Bo is hired twice, however much money is left. */
  outcome.progress.tokens_limit = 2;
  assert_near(cv_pulls_sums(&outcome).regret, 2 * .9 - sums.reward, 1e-9);
  cv_outcome_fini(&outcome);
}

static void test_a_graph_says_what_is_still_active(void **state) {
  struct cv_outcome outcome;
  struct cv_spec spec = {.arms = ARMS, .epsilon_micro = 1000000};
  make(&outcome, CV_POLICY_GRAPH, &spec);
  json_t *result = cv_result_json(&outcome, "gap");
  const json_t *arms = json_object_get(result, "arms");
  assert_true(json_is_true(json_object_get(json_array_get(arms, 0), "active")));
  assert_true(json_is_false(json_object_get(json_array_get(arms, 1), "active")));
  assert_int_equal(json_integer_value(json_object_get(result, "rounds")), 7);
  json_decref(result);
  cv_outcome_fini(&outcome);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_bandit_is_measured_against_its_best_arm),
      cmocka_unit_test(test_an_adversary_is_looked_back_at),
      cmocka_unit_test(test_a_recruitment_is_measured_against_the_densest),
      cmocka_unit_test(test_a_graph_says_what_is_still_active),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
