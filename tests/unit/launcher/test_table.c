/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign's result as text and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "common/campaign/accuracy.h"
#include "deploy/launcher/result_json.h"
#include "deploy/launcher/table.h"
#include "tests/support/near.h"

/* Found classes of arms 0, 1, ... as standings. */
static struct cv_accuracy accuracy_of(const uint32_t *truth, const uint32_t *found, uint32_t arms, double alpha) {
  struct cv_standing standing[16] = {0};
  for (uint32_t i = 0; i < arms; i++) {
    standing[i] = (struct cv_standing){.arm = i, .rank_class = found[i]};
  }
  return cv_accuracy(truth, standing, arms, alpha);
}

static void test_accuracy_all_right(void **state) {
  const uint32_t truth[] = {1, 1, 2, 3};
  struct cv_accuracy accuracy = accuracy_of(truth, truth, 4, 0.1);
  assert_int_equal(accuracy.classes, 10);
  assert_int_equal(accuracy.filled, 3);
  assert_near(accuracy.all, 1, 0);
  assert_near(accuracy.of_filled, 1, 0);
  assert_near(accuracy.least, 1, 0);
}

/* One of the two arms of class 1 was put into class 2: 1/2, 1/1, and eight empty classes that are correct. */
static void test_accuracy_one_arm_astray(void **state) {
  const uint32_t truth[] = {1, 1, 2}, found[] = {1, 2, 2};
  struct cv_accuracy accuracy = accuracy_of(truth, found, 3, 0.1);
  assert_near(accuracy.of_filled, 0.75, 1e-12);
  assert_near(accuracy.all, (0.5 + 1 + 8) / 10, 1e-12);
  assert_near(accuracy.least, 0.5, 1e-12);
}

/* An arm in a class that should be empty: that class counts 0, although no arm truly belongs to it. */
static void test_accuracy_class_too_many(void **state) {
  const uint32_t truth[] = {1, 1, 1}, found[] = {1, 1, 2};
  struct cv_accuracy accuracy = accuracy_of(truth, found, 3, 0.25);
  assert_int_equal(accuracy.classes, 4);
  assert_int_equal(accuracy.filled, 2);
  assert_near(accuracy.all, (2.0 / 3 + 0 + 2) / 4, 1e-12);
  assert_near(accuracy.of_filled, 1.0 / 3, 1e-12);
  assert_near(accuracy.least, 0, 0);
}

static void test_accuracy_undecided_is_a_miss(void **state) {
  const uint32_t truth[] = {1, 2}, found[] = {1, 0};
  struct cv_accuracy accuracy = accuracy_of(truth, found, 2, 0.5);
  assert_int_equal(accuracy.classes, 2);
  assert_near(accuracy.all, 0.5, 1e-12);
}

/* The number of possible classes: not one too many by rounding, one if alpha spans everything, one per arm for alpha
 * 0. */
static void test_accuracy_possible_classes(void **state) {
  static const struct {
    double alpha;
    uint32_t classes;
  } cases[] = {{0.1, 10}, {0.2, 5}, {0.3, 4}, {0.4, 3}, {1, 1}, {7, 1}, {0, 3}, {1.0 / 49, 49}, {1e-12, UINT32_MAX}};
  const uint32_t truth[] = {1, 1, 1};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_accuracy accuracy = accuracy_of(truth, truth, 3, cases[i].alpha);
    assert_int_equal(accuracy.classes, cases[i].classes);
    assert_near(accuracy.all, 1, 1e-12);
  }
}

/* ---- a whole outcome ---- */

static const double means[] = {0.5, 0.97, 0.05, 1.0};
static const char *const names[] = {"rye", "Grünkern", "oat", "spelt"};

/* Arm 1 is found where it does not belong, arm 2 is undecided. */
static void make(struct cv_outcome *outcome, bool with_truth) {
  struct cv_spec spec = {.epsilon_micro = 250000};
  struct cv_standing standing[] = {
      {.arm = 3, .rank_class = 1, .tokens = 12000, .mean = 1.001, .radius = 0.03},
      {.arm = 0, .rank_class = 2, .tokens = 6000, .mean = 0.51, .radius = 0.04},
      {.arm = 1, .rank_class = 2, .tokens = 6000, .mean = 0.96, .radius = 0.04},
      {.arm = 2, .rank_class = 0, .tokens = 0},
  };
  const struct cv_finished finished = {
      .progress = {.campaign = 3,
                   .name = "bread",
                   .tokens = 1234567,
                   .tokens_limit = 5000000,
                   .plans = 9,
                   .elapsed_ms = 2000,
                   .arms = 4,
                   .epsilon_spent_micro = 125000,
                   .end = CV_END_TOKENS},
      .standings = 4,
      .standing = standing,
  };
  const struct cv_outcome_known known = {.spec = &spec, .name = names, .mean = with_truth ? means : NULL};
  assert_int_equal(cv_params_set_number(&spec.policy.params, "alpha", 0.1), CV_OK);
  assert_int_equal(cv_outcome_init(outcome, &finished, &known), CV_OK);
}

static void test_outcome_in_order(void **state) {
  struct cv_outcome outcome;
  make(&outcome, true);
  static const uint32_t order[] = {3, 1, 0, 2};
  static const uint32_t truth[] = {2, 1, 3, 1};
  for (uint32_t i = 0; i < 4; i++) {
    assert_int_equal(outcome.order[i], order[i]);
    assert_int_equal(outcome.truth[i], truth[i]);
    assert_int_equal(outcome.standing[i].arm, i);
  }
  assert_int_equal(cv_outcome_undecided(&outcome), 1);
  cv_outcome_fini(&outcome);
}

static char *printed(const struct cv_outcome *outcome) {
  char *text = NULL;
  size_t n = 0;
  FILE *to = open_memstream(&text, &n);
  assert_non_null(to);
  cv_table_print(outcome, to);
  assert_int_equal(fclose(to), 0);
  return text;
}

/* Column of `what` in the line of `text` that holds `line`, counted in characters. */
static size_t column_of(const char *text, const char *line, const char *what) {
  const char *at = strstr(text, line);
  assert_non_null(at);
  while (at > text && at[-1] != '\n') {
    at--;
  }
  const char *found = strstr(at, what);
  assert_non_null(found);
  size_t column = 0;
  for (; at < found; at++) {
    column += ((unsigned char)*at & 0xc0) != 0x80;
  }
  return column;
}

static void test_print(void **state) {
  struct cv_outcome outcome;
  make(&outcome, true);
  char *text = printed(&outcome);
  assert_int_equal(strncmp(text, "3 of 4 items decided, 1 undecided\n", 34), 0); /* before all else */
  assert_non_null(strstr(text, "ended       token limit, 3 of 4 items decided, 1 undecided\n"));
  assert_non_null(strstr(text, "accuracy    0.6667: 2 of 3 decided items are in their true class\n"));
  assert_non_null(strstr(text, "undecided   oat\n"));
  assert_non_null(strstr(text, "epsilon     0.125 of 0.25 spent on each token\n"));
  assert_non_null(strstr(text, "tokens      1,234,567 of 5,000,000\n"));
  assert_non_null(strstr(text, "time        2.0 s, 617,284 tokens a second\n"));
  /* Columns stay aligned although one name has a letter of two bytes. */
  assert_int_equal(column_of(text, "Grünkern", "0.9600"), column_of(text, "rye", "0.5100"));
  assert_int_equal(column_of(text, "Grünkern", "miss"), column_of(text, "spelt", "hit"));
  assert_int_equal(column_of(text, "rye", "hit"), column_of(text, "oat  ", "undecided"));
  free(text);
  cv_outcome_fini(&outcome);
}

/* Means in the unit of the data file, too: 0.51 of 1 to 5 stars is 3.04. */
static void test_the_unit_of_a_data_file(void **state) {
  struct cv_outcome outcome;
  struct cv_prepared file = {.file.items = {.source = CV_SOURCE_CSV, .csv = {.score_column = "stars"}},
                             .file.spec.scale = {.low = 1, .high = 5}};
  make(&outcome, true);
  outcome.unit = cv_unit_of(&file);
  char *text = printed(&outcome);
  assert_non_null(strstr(text, "3.0400 ± 0.1600"));
  assert_non_null(strstr(text, "5.0040 ± 0.1200"));
  assert_int_equal(column_of(text, "class", "stars"), column_of(text, "rye", "3.0400"));
  assert_int_equal(column_of(text, "Grünkern", "miss"), column_of(text, "spelt", "hit"));
  free(text);
  json_t *unit = cv_unit_json(&outcome.unit, outcome.name, outcome.standing, outcome.arms);
  assert_string_equal(json_string_value(json_object_get(unit, "score")), "stars");
  json_t *rye = json_object_get(json_object_get(unit, "items"), "rye");
  assert_near(json_real_value(json_object_get(rye, "mean")), 3.04, 1e-9);
  assert_near(json_real_value(json_object_get(rye, "radius")), 0.16, 1e-9);
  assert_true(json_is_null(json_object_get(json_object_get(unit, "items"), "oat")));
  json_decref(unit);
  /* as far apart as doubles can be: no infinity, and no comma after a number that nobody can read */
  file.file.spec.scale = (struct cv_scale){.low = -1e308, .high = 1e308};
  outcome.unit = cv_unit_of(&file);
  text = printed(&outcome);
  assert_non_null(strstr(text, "2e+306 ± 8e+306"));
  free(text);
  /* a scale from 0 to 1 is the campaign's own */
  file.file.spec.scale = (struct cv_scale){.low = 0, .high = 1};
  assert_null(cv_unit_of(&file).name);
  assert_null(cv_unit_of(NULL).name);
  /* a file of comparisons has no scale */
  file.file.spec.scale = (struct cv_scale){0};
  assert_null(cv_unit_of(&file).name);
  file.file.items.source = CV_SOURCE_GIVEN;
  file.file.spec.scale = (struct cv_scale){0};
  assert_null(cv_unit_of(&file).name);
  cv_outcome_fini(&outcome);
}

static void test_print_without_truth(void **state) {
  struct cv_outcome outcome;
  make(&outcome, false);
  char *text = printed(&outcome);
  assert_null(strstr(text, "truth"));
  assert_null(strstr(text, "hit"));
  assert_null(strstr(text, "accuracy"));
  free(text);
  cv_outcome_fini(&outcome);
}

/* One line, unless there is nothing to find out. */
static void test_print_of_the_bounds(void **state) {
  struct cv_outcome outcome;
  make(&outcome, true);
  outcome.has_bound = true;
  outcome.bound = (struct cv_bound){.sum = 123456.7, .pair = 246913.4};
  char *text = printed(&outcome);
  assert_non_null(strstr(text,
                         "\nbound       tokens are 10.00 times the sum bound, 5.00 times the pair bound of an equally "
                         "private ranking\n"));
  free(text);
  json_t *result = cv_result_json(&outcome, "ppar");
  assert_near(json_real_value(json_object_get(result, "over_sum_bound")), 10, 1e-12);
  assert_near(json_real_value(json_object_get(result, "over_pair_bound")), 5, 1e-12);
  json_decref(result);
  outcome.bound = (struct cv_bound){.sum = (double)INFINITY, .pair = (double)INFINITY};
  text = printed(&outcome);
  assert_non_null(strstr(text, "\nbound       infinite: items tie"));
  free(text);
  result = cv_result_json(&outcome, "ppar");
  assert_true(json_is_null(json_object_get(result, "over_sum_bound")));
  assert_true(json_is_null(json_object_get(result, "over_pair_bound")));
  json_decref(result);
  outcome.bound = (struct cv_bound){0};
  text = printed(&outcome);
  assert_null(strstr(text, "bound"));
  free(text);
  cv_outcome_fini(&outcome);
}

/* Two columns, and the least of each below, also as workers. An undecided item bears nothing. */
static void test_print_of_lies(void **state) {
  struct cv_outcome outcome;
  make(&outcome, true);
  outcome.lies =
      (struct cv_lies){.of_arm = calloc(4, sizeof(*outcome.lies.of_arm)), .arms = 4, .tokens_per_worker = 10};
  assert_non_null(outcome.lies.of_arm);
  outcome.lies.of_arm[3] = (struct cv_policy_lies){.safe = 1201, .turn = CV_LIES_NEVER};
  outcome.lies.least = (struct cv_policy_lies){.safe = 1201, .turn = CV_LIES_NEVER};
  char *text = printed(&outcome);
  assert_non_null(strstr(text,
                         "\nlies        at least 1,201 (workers: 121) to make a wrong class more probable\n"
                         "            no number of them can turn a class by the noisy means\n"));
  assert_int_equal(column_of(text, "spelt", "1,201") + strlen("1,201"), column_of(text, "class", "safe") + 4);
  assert_int_equal(column_of(text, "spelt", "hit"), column_of(text, "rye", "hit"));
  free(text);
  json_t *result = cv_result_json(&outcome, "ppar"), *lies = json_object_get(result, "lies");
  assert_int_equal(json_integer_value(json_object_get(lies, "safe")), 1201);
  assert_int_equal(json_integer_value(json_object_get(lies, "tokens_per_worker")), 10);
  assert_true(json_is_null(json_object_get(lies, "turn")));
  json_t *items = json_object_get(lies, "items");
  assert_int_equal(json_integer_value(json_object_get(json_object_get(items, "spelt"), "safe")), 1201);
  assert_true(json_is_null(json_object_get(json_object_get(items, "oat"), "safe")));
  json_decref(result);
  cv_lies_fini(&outcome.lies);
  (void)cv_fail(&outcome.lies.unknown, CV_ERR_INVALID, "some reason");
  text = printed(&outcome);
  assert_non_null(strstr(text, "\nlies        not known: some reason\n"));
  assert_null(strstr(text, "safe"));
  free(text);
  result = cv_result_json(&outcome, "ppar");
  assert_true(json_is_null(json_object_get(result, "lies")));
  json_decref(result);
  cv_outcome_fini(&outcome);
}

/* Of a campaign with gold items: a column of its own, and no number of lies where these may be too many already. */
static void test_print_of_neutral_tokens(void **state) {
  struct cv_outcome outcome;
  make(&outcome, true);
  outcome.lies = (struct cv_lies){.of_arm = calloc(4, sizeof(*outcome.lies.of_arm)),
                                  .arms = 4,
                                  .tokens_per_worker = 10,
                                  .neutral = calloc(4, sizeof(*outcome.lies.neutral)),
                                  .neutral_most = 1300,
                                  .neutral_radius = 71,
                                  .least = {.safe = 0, .turn = 25}};
  assert_true(outcome.lies.of_arm != NULL && outcome.lies.neutral != NULL);
  outcome.lies.neutral[3] = -17;
  outcome.neutral_micro = 70000;
  char *text = printed(&outcome);
  assert_non_null(strstr(
      text,
      "epsilon     0.125 of 0.25 spent on each token, and 0.07 on the numbers of neutral tokens: 0.195 in all\n"));
  assert_non_null(strstr(text,
                         "\nneutral     at most 1,300 tokens, of workers found by gold items; each item's number ± 71\n"
                         "lies        not known: the tokens of workers found by gold items may make a wrong class more "
                         "probable\n"
                         "            at least 25 (workers: 3) to turn a class by the noisy means\n"));
  assert_int_equal(column_of(text, "spelt", "-17") + strlen("-17"), column_of(text, "class", "neutral") + 7);
  assert_int_equal(column_of(text, "spelt", "hit"), column_of(text, "rye", "hit"));
  free(text);
  json_t *result = cv_result_json(&outcome, "ppar"), *neutral = json_object_get(result, "neutral");
  assert_int_equal(json_integer_value(json_object_get(neutral, "most")), 1300);
  assert_near(json_real_value(json_object_get(neutral, "radius")), 71, 0);
  assert_int_equal(json_integer_value(json_object_get(neutral, "epsilon_micro")), 70000);
  assert_int_equal(json_integer_value(json_object_get(json_object_get(neutral, "items"), "spelt")), -17);
  assert_true(json_is_null(json_object_get(json_object_get(result, "lies"), "safe")));
  json_decref(result);
  cv_outcome_fini(&outcome);
}

/* The broker names an arm that does not exist, and leaves out others: these are undecided. */
static void test_outcome_of_a_strange_broker(void **state) {
  struct cv_standing standing[] = {{.arm = 9, .rank_class = 1}, {.arm = 1, .rank_class = 1, .tokens = 5, .mean = 0.5}};
  const struct cv_finished finished = {.progress = {.arms = 2}, .standings = 2, .standing = standing};
  const struct cv_outcome_known nothing = {0};
  struct cv_outcome outcome;
  assert_int_equal(cv_outcome_init(&outcome, &finished, &nothing), CV_OK);
  assert_int_equal(cv_outcome_undecided(&outcome), 1);
  assert_string_equal(outcome.name[1], "arm 2");
  char *text = printed(&outcome);
  assert_non_null(strstr(text, "undecided   arm 1\n"));
  free(text);
  cv_outcome_fini(&outcome);
}

/* What the broker says without the file: arms are shown by their workers' numbers. */
static void test_workers_without_names_have_their_numbers(void **state) {
  uint64_t workers[] = {7, UINT64_C(1) << 40}, costs[] = {2000000, 5000000};
  const struct cv_spec spec = {.arms = 2, .worker = workers, .cost_micro = costs, .budget_micro = 20000000};
  struct cv_standing standing[] = {{.arm = 0, .tokens = 5, .mean = 0.5}};
  const struct cv_finished finished = {
      .progress = {.arms = 2, .paid_micro = 10000000, .budget_micro = 20000000}, .standings = 1, .standing = standing};
  const struct cv_outcome_known known = {.kind = CV_POLICY_RECRUITMENT, .spec = &spec};
  struct cv_outcome outcome;
  assert_int_equal(cv_outcome_init(&outcome, &finished, &known), CV_OK);
  char *text = printed(&outcome);
  assert_non_null(strstr(text, "worker 7 "));
  assert_non_null(strstr(text, "worker 1099511627776 "));
  assert_non_null(strstr(text, "paid        10 of 20\n"));
  assert_null(strstr(text, "regret"));
  assert_null(strstr(text, "undecided"));
  free(text);
  cv_outcome_fini(&outcome);
}

/* ---- for programs ---- */

static void assert_json(const json_t *object, const char *key, const char *expected) {
  char *text = json_dumps(json_object_get(object, key), JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
  assert_non_null(text);
  assert_string_equal(text, expected);
  free(text);
}

static void test_json(void **state) {
  struct cv_outcome outcome;
  make(&outcome, true);
  json_t *result = cv_result_json(&outcome, "ppar");
  assert_non_null(result);
  assert_json(result, "campaign", "\"bread\"");
  assert_json(result, "policy", "\"ppar\"");
  assert_json(result, "classes", "[[\"spelt\"],[\"Grünkern\",\"rye\"]]");
  assert_json(result, "undecided", "[\"oat\"]");
  assert_json(result, "truth", "[[\"spelt\",\"Grünkern\"],[\"rye\"],[\"oat\"]]");
  assert_json(result, "accuracy", "0.666667"); /* 2 of the 3 that are decided */
  assert_json(result, "decided", "3");
  assert_json(result, "ended", "\"token limit\"");
  assert_json(result, "parked", "[]");
  assert_json(result, "next", "null");
  assert_json(result, "item_tokens", "{\"spelt\":12000,\"Grünkern\":6000,\"rye\":6000,\"oat\":0}");
  assert_json(result, "tokens", "1234567");
  assert_json(result, "rounds", "9");
  assert_json(result, "epsilon_spent_micro", "125000");
  assert_json(result, "seconds", "2.0");
  assert_json(result, "tokens_per_second", "617284.0");
  assert_json(result, "over_sum_bound", "null"); /* no file says how the scores were drawn */
  assert_json(result, "lies", "null");           /* without an export */
  assert_json(result, "neutral", "null");        /* likewise */
  assert_json(result, "class_ranges", "{}");
  assert_json(result, "contradictions", "{\"assumption\":\"independent scores\",\"items\":[]}");
  assert_int_equal(json_object_size(result), 24);
  assert_json(result, "wrong", "[\"Grünkern\"]");
  json_decref(result);
  cv_outcome_fini(&outcome);
}

static void test_json_without_truth(void **state) {
  struct cv_outcome outcome;
  make(&outcome, false);
  json_t *result = cv_result_json(&outcome, "ppar");
  assert_json(result, "truth", "null");
  assert_json(result, "accuracy", "null");
  assert_json(result, "wrong", "null");
  json_decref(result);
  cv_outcome_fini(&outcome);
}

static void test_exit_status(void **state) {
  for (int end = 0; end < CV_END_COUNT; end++) {
    bool is_good = end == CV_END_COMPLETE || end == CV_END_TOKENS || end == CV_END_DEADLINE || end == CV_END_LEDGER ||
                   end == CV_END_BUDGET;
    assert_int_equal(cv_launcher_end_status((enum cv_end)end), is_good ? 0 : 1);
  }
}

/* ---- items without a class ---- */

/* Two parked ones, and an undecided one whose answers contradict each other. */
static void make_parked(struct cv_outcome *outcome, uint32_t decided) {
  struct cv_spec spec = {.epsilon_micro = 250000};
  struct cv_standing standing[] = {
      {.arm = 0, .rank_class = decided > 0 ? 1 : 0, .tokens = 100, .mean = 0.9, .radius = 0.1},
      {.arm = 1, .rank_class = 1, .rank_last = 2, .held = CV_HELD_BOUNDARY, .tokens = 100, .mean = 0.8, .radius = 0.1},
      {.arm = 2, .rank_class = 2, .rank_last = 4, .held = CV_HELD_USED_UP, .tokens = 100, .mean = 0.4, .radius = 0.1},
      {.arm = 3,
       .rank_class = 2,
       .rank_last = 3,
       .held = CV_HELD_OPEN,
       .tokens = 100,
       .mean = 0.97,
       .radius = 0.1,
       .contradicts = true},
  };
  static const double mean[] = {0.9, 0.79, 0.4, 0.45};
  const struct cv_finished finished = {
      .progress = {.name = "bread", .arms = 4, .end = CV_END_COMPLETE}, .standings = 4, .standing = standing};
  const struct cv_outcome_known known = {.spec = &spec, .name = names, .mean = mean};
  assert_int_equal(cv_params_set_number(&spec.policy.params, "alpha", 0.1), CV_OK);
  assert_int_equal(cv_outcome_init(outcome, &finished, &known), CV_OK);
}

static void test_parked_items_are_named_with_their_classes(void **state) {
  struct cv_outcome outcome;
  make_parked(&outcome, 1);
  char *text = printed(&outcome);
  static const char lead[] = "1 of 4 items decided, 1 on a boundary, 1 used up, 1 undecided\n";
  assert_int_equal(strncmp(text, lead, strlen(lead)), 0);
  assert_non_null(strstr(
      text, "boundary    Grünkern (class 1 or 2)\nused up     oat (class 2 to 4)\nundecided   spelt (class 2 or 3)\n"));
  assert_non_null(strstr(text, "warning     the answers contradict the assumption of independent scores: 1 item\n"));
  /* Intervals end where scores do. */
  assert_non_null(strstr(text, "  spelt      0.9700   0.8700 to 1.0000"));
  assert_non_null(strstr(text, "\n1 or 2  Grünkern "));
  assert_non_null(strstr(text, "\n2 to 4  oat "));
  assert_int_equal(column_of(text, "1 or 2  Grünkern", "Grünkern"), column_of(text, "     1  rye", "rye"));
  assert_non_null(strstr(text, "accuracy    1.0000: 1 of 1 decided items are in their true class\n"));
  /* The rest, best first: the order in which they are likely to be. */
  const char *rest = strstr(text, "best effort, not covered by delta");
  assert_non_null(rest);
  assert_true(strstr(rest, "spelt") < strstr(rest, "Grünkern") && strstr(rest, "Grünkern") < strstr(rest, "oat"));
  free(text);
  json_t *result = cv_result_json(&outcome, "ppar");
  assert_json(result, "undecided", "[\"Grünkern\",\"spelt\",\"oat\"]");
  assert_json(result, "parked",
              "[{\"name\":\"Grünkern\",\"class\":1,\"class_last\":2,\"held\":\"boundary\"},"
              "{\"name\":\"oat\",\"class\":2,\"class_last\":4,\"held\":\"used up\"}]");
  assert_json(result, "class_ranges", "{\"Grünkern\":[1,2],\"spelt\":[2,3],\"oat\":[2,4]}");
  assert_json(result, "contradictions", "{\"assumption\":\"independent scores\",\"items\":[\"spelt\"]}");
  assert_json(result, "accuracy", "1.0");
  assert_int_equal(json_array_size(json_object_get(result, "best_effort")), 3);
  json_decref(result);
  cv_outcome_fini(&outcome);
}

static void test_nothing_decided_has_no_accuracy(void **state) {
  struct cv_outcome outcome;
  make_parked(&outcome, 0);
  char *text = printed(&outcome);
  assert_int_equal(strncmp(text, "0 of 4 items decided", 20), 0);
  assert_null(strstr(text, "accuracy"));
  free(text);
  json_t *result = cv_result_json(&outcome, "ppar");
  assert_json(result, "accuracy", "null");
  json_decref(result);
  cv_outcome_fini(&outcome);
}

/* By the releases: 100 tokens of .8 and of .7 without noise, 900 of .7 with much; what needs least comes next. */
static void test_neighbours_are_swapped_with_the_normal_probability(void **state) {
  struct cv_release release[] = {
      {.number = 1, .arm = 1, .tokens = 100, .noisy_sum = INT64_C(80) << 20},
      {.number = 2, .arm = 0, .tokens = 100, .noisy_sum = INT64_C(70) << 20},
      {.number = 3, .arm = 2, .tokens = 900, .noisy_sum = INT64_C(495) << 20, .noise = {1, {{100, 2}}}}};
  struct cv_export export = {.spec = {.arms = 3, .epsilon_micro = 1000000}, .release = release, .releases = 3};
  (void)snprintf(export.spec.privatizer.name, sizeof(export.spec.privatizer.name), "none");
  struct cv_standing standing[3];
  for (uint32_t i = 0; i < 3; i++) {
    standing[i] = (struct cv_standing){.arm = i, .tokens = release[i].tokens, .mean = 0.5, .radius = 0.5};
  }
  static const double need[] = {5000, 70, (double)NAN};
  struct cv_rest rest;
  assert_int_equal(cv_rest_of(standing, 3, &export, need, &rest), CV_OK);
  assert_int_equal(rest.items, 3);
  assert_true(rest.item[0].arm == 1 && rest.item[1].arm == 0 && rest.item[2].arm == 2);
  assert_near(rest.item[0].deviation, 0.04, 0.001);                             /* sqrt(.8 .2 / 100) */
  assert_near(rest.item[0].swapped, 0.5 * erfc(0.1 / 0.0608 / sqrt(2)), 0.003); /* sqrt(.04^2 + .0458^2) */
  assert_near(rest.item[2].deviation, sqrt(900 * 0.2475 + 4 * 10000) / 900, 0.001);
  assert_true(isnan(rest.item[2].swapped));
  assert_int_equal(rest.next, 0);
  cv_rest_fini(&rest);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_accuracy_all_right),
      cmocka_unit_test(test_accuracy_one_arm_astray),
      cmocka_unit_test(test_accuracy_class_too_many),
      cmocka_unit_test(test_accuracy_undecided_is_a_miss),
      cmocka_unit_test(test_accuracy_possible_classes),
      cmocka_unit_test(test_outcome_in_order),
      cmocka_unit_test(test_print),
      cmocka_unit_test(test_the_unit_of_a_data_file),
      cmocka_unit_test(test_print_without_truth),
      cmocka_unit_test(test_print_of_the_bounds),
      cmocka_unit_test(test_print_of_lies),
      cmocka_unit_test(test_print_of_neutral_tokens),
      cmocka_unit_test(test_outcome_of_a_strange_broker),
      cmocka_unit_test(test_workers_without_names_have_their_numbers),
      cmocka_unit_test(test_json),
      cmocka_unit_test(test_json_without_truth),
      cmocka_unit_test(test_exit_status),
      cmocka_unit_test(test_parked_items_are_named_with_their_classes),
      cmocka_unit_test(test_nothing_decided_has_no_accuracy),
      cmocka_unit_test(test_neighbours_are_swapped_with_the_normal_probability),
  };
  return cmocka_run_group_tests_name("launcher_table", tests, NULL, NULL);
}
