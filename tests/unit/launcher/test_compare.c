/* SPDX-License-Identifier: Apache-2.0 */
/* Results of rankings are read, refused if they are wrong or of other items, and shown side by side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/text.h"
#include "common/base/width.h"
#include "deploy/launcher/compare.h"
#include "deploy/launcher/result_json.h"
#include "tests/support/folder.h"
#include "tests/support/near.h"

static enum cv_err read_text(const char *text, struct cv_compared *ret, struct cv_why *why) {
  struct folder folder;
  folder_make(&folder);
  const char *path = folder_file(&folder, "result.json");
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  enum cv_err err = cv_compared_read(path, ret, why);
  folder_remove(&folder);
  return err;
}

static void read_good(const char *text, struct cv_compared *ret) {
  struct cv_why why = {.text = ""};
  if (read_text(text, ret, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

#define SUMS "\"tokens\": 30, \"rounds\": 2, \"epsilon_spent_micro\": 250000, \"seconds\": 1.25"
#define FIRST                                                                                          \
  "{\"campaign\": \"bread\", \"policy\": \"ppar\", \"classes\": [[\"rye 10\"], [\"oat\"]], "           \
  "\"undecided\": [\"rye 2\"], \"truth\": [[\"rye 10\"], [\"rye 2\"], [\"oat\"]], \"accuracy\": 0.5, " \
  "\"wrong\": [\"oat\"], "                                                                             \
  "\"item_tokens\": {\"rye 2\": 5, \"oat\": 10, \"rye 10\": 15}, \"lies\": {\"safe\": 3, \"turn\": null}, " SUMS "}"
#define SECOND                                                                                                 \
  "{\"campaign\": \"bread\", \"policy\": \"ppar-kl\", \"classes\": [[\"rye 10\"], [\"rye 2\"], [\"oat\"]], "   \
  "\"undecided\": [], \"truth\": [[\"rye 10\"], [\"rye 2\"], [\"oat\"]], \"accuracy\": 1, \"wrong\": [], "     \
  "\"item_tokens\": {\"rye 2\": 1, \"oat\": 2, \"rye 10\": 3}, \"lies\": null, \"tokens\": 6, \"rounds\": 7, " \
  "\"epsilon_spent_micro\": 125000, \"seconds\": 0.5}"

/* `text` with `from` replaced by `to`; the caller frees it. */
static char *changed(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  char *ret = NULL;
  assert_non_null(at);
  assert_true(asprintf(&ret, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
  return ret;
}

/* ---- reading ---- */

static void test_read(void **state) {
  struct cv_compared compared;
  read_good(FIRST, &compared);
  static const struct cv_compared_item items[] = {
      {"oat", 2, 3, false, 10}, {"rye 2", 0, 2, false, 5}, {"rye 10", 1, 1, true, 15}};
  assert_string_equal(compared.campaign, "bread");
  assert_string_equal(compared.policy, "ppar");
  assert_int_equal(compared.items, 3);
  for (uint32_t i = 0; i < 3; i++) {
    assert_string_equal(compared.item[i].name, items[i].name);
    assert_int_equal(compared.item[i].rank_class, items[i].rank_class);
    assert_int_equal(compared.item[i].truth, items[i].truth);
    assert_int_equal(compared.item[i].is_right, items[i].is_right);
    assert_int_equal(compared.item[i].tokens, items[i].tokens);
  }
  assert_true(compared.has_truth && compared.tokens == 30 && compared.rounds == 2 &&
              compared.epsilon_spent_micro == 250000);
  assert_near(compared.accuracy, 0.5, 0);
  assert_near(compared.seconds, 1.25, 0);
  assert_int_equal(cv_compared_undecided(&compared), 1);
  assert_int_equal(cv_compared_right(&compared), 1);
  cv_compared_fini(&compared);
}

/* What `up --json` prints is what is read, with and without the truth. */
static void test_a_result_is_read_as_it_is_written(void **state) {
  static const char *const names[] = {"Grünkern \"A\"", "oat"};
  static const double means[] = {0.2, 0.9};
  struct cv_spec spec = {.name = "bread"};
  struct cv_standing standing[] = {{.arm = 0, .rank_class = 0, .tokens = 7}, {.arm = 1, .rank_class = 1, .tokens = 9}};
  const struct cv_finished finished = {
      .progress = {.name = "bread", .arms = 2, .tokens = 16, .plans = 3, .elapsed_ms = 1500},
      .standings = 2,
      .standing = standing};
  assert_int_equal(cv_params_set_number(&spec.policy.params, "alpha", 0.1), CV_OK);
  for (int known = 0; known < 2; known++) {
    const struct cv_outcome_known all = {.spec = &spec, .name = names, .mean = known == 0 ? NULL : means};
    struct cv_outcome outcome;
    struct cv_compared compared;
    assert_int_equal(cv_outcome_init(&outcome, &finished, &all), CV_OK);
    json_t *result = cv_result_json(&outcome, "ppar");
    char *text = json_dumps(result, 0);
    read_good(text, &compared);
    assert_int_equal(compared.has_truth, known);
    assert_string_equal(compared.item[0].name, names[0]);
    assert_true(compared.item[0].rank_class == 0 && compared.item[0].tokens == 7);
    assert_true(compared.item[1].rank_class == 1 && compared.item[1].tokens == 9);
    assert_int_equal(compared.item[0].truth, known == 0 ? 0 : 2);
    assert_true(compared.tokens == 16 && compared.rounds == 3);
    cv_compared_fini(&compared);
    free(text);
    json_decref(result);
    cv_outcome_fini(&outcome);
  }
}

static void test_what_is_refused(void **state) {
  static const struct {
    const char *from, *to, *expected;
  } cases[] = {
      {"{\"campaign\"", "[\"campaign\"", "result.json:1:"},
      {FIRST, "[]", "campaign is missing or wrong; expected a short text"},
      {"\"bread\"", "\"a\\nb\"", "campaign is missing or wrong; expected a name"},
      {"\"ppar\"", "7", "policy is missing or wrong; expected a short text"},
      {"\"classes\":", "\"arms\":", "policy ppar does not rank; expected the result of a ranking"},
      {"\"classes\":", "\"groups\":", "classes is missing or wrong"},
      {"[\"oat\"]], \"undecided", "\"oat\"], \"undecided", "classes is missing or wrong; expected a list of names"},
      {"[\"oat\"]], \"undecided", "[1]], \"undecided", "classes is missing or wrong; expected names of items"},
      {"[\"oat\"]], \"undecided", "[\"\"]], \"undecided", "classes is missing or wrong; expected names of items"},
      {"[\"oat\"]], \"undecided", "[\"\\u001b[2J\"]], \"undecided", "classes is missing or wrong; expected names"},
      {"[\"oat\"]], \"undecided", "[\"rye 2\"]], \"undecided", "classes is missing or wrong; expected each item once"},
      {"\"undecided\": [\"rye 2\"]", "\"undecided\": null", "undecided is missing or wrong"},
      {"[\"rye 2\"], [\"oat\"]], \"acc", "[\"oat\"]], \"acc", "truth is missing or wrong"},
      {"[\"rye 2\"], [\"oat\"]], \"acc", "[\"rye 3\"], [\"oat\"]], \"acc", "truth is missing or wrong"},
      {"[\"rye 2\"], [\"oat\"]], \"acc", "[\"oat\"], [\"oat\"]], \"acc", "truth is missing or wrong"},
      {"0.5", "1.5", "accuracy is missing or wrong; expected a number from 0 to 1"},
      {"0.5", "null", "accuracy is missing or wrong; expected a number"},
      {"\"wrong\"", "\"wrongs\"", "wrong is missing or wrong"},
      {"\"wrong\": [\"oat\"]", "\"wrong\": [\"rye 2\"]", "wrong is missing or wrong; expected items of classes"},
      {"\"wrong\": [\"oat\"]", "\"wrong\": [\"oat\", \"oat\"]", "wrong is missing or wrong; expected items of"},
      {"\"wrong\": [\"oat\"]", "\"wrong\": [1]", "wrong is missing or wrong; expected items of classes"},
      {"\"item_tokens\"", "\"item_tokes\"", "item_tokens is missing or wrong"},
      {"\"oat\": 10", "\"oats\": 10", "item_tokens.oat is missing or wrong; expected a whole number"},
      {"\"oat\": 10", "\"oat\": -1", "item_tokens.oat is missing or wrong; expected a whole number"},
      {"\"oat\": 10, ", "", "item_tokens is missing or wrong"},
      {"\"tokens\": 30", "\"tokens\": 3.5", "tokens is missing or wrong; expected a whole number"},
      {"\"rounds\": 2", "\"rounds\": \"2\"", "rounds is missing or wrong; expected a whole number"},
      {"\"safe\": 3", "\"safe\": -3", "lies.safe is missing or wrong; expected a whole number"},
      {"1.25", "-1", "seconds is missing or wrong; expected a number from 0"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_compared compared = {0};
    struct cv_why why = {.text = ""};
    char *text = changed(FIRST, cases[i].from, cases[i].to);
    enum cv_err err = read_text(text, &compared, &why);
    if (err != CV_ERR_FORMAT || strstr(why.text, cases[i].expected) == NULL || compared.item != NULL) {
      fail_msg("case %zu: error %d: %s", i, err, why.text);
    }
    free(text);
  }
}

static void test_more_items_than_a_campaign_has(void **state) {
  char *text = NULL;
  size_t n = 0;
  struct cv_compared compared;
  struct cv_why why;
  FILE *to = open_memstream(&text, &n);
  assert_non_null(to);
  (void)fprintf(to, "{\"campaign\": \"a\", \"policy\": \"b\", \"undecided\": [\"more\"], \"classes\": [[\"0\"");
  for (int i = 1; i < CV_ARMS_MAX; i++) {
    (void)fprintf(to, ", \"%d\"", i);
  }
  (void)fprintf(to, "]]}");
  assert_int_equal(fclose(to), 0);
  assert_int_equal(read_text(text, &compared, &why), CV_ERR_FORMAT);
  assert_non_null(strstr(why.text, "undecided is missing or wrong; expected names of items"));
  free(text);
}

static void test_a_file_that_does_not_exist(void **state) {
  struct cv_compared compared;
  struct cv_why why;
  assert_int_equal(cv_compared_read("/nonexistent/result.json", &compared, &why), CV_ERR_IO);
  assert_string_equal(why.text, "/nonexistent/result.json: cannot be read: No such file or directory");
}

/* ---- side by side ---- */

static const char *const paths[] = {"a.json", "b.json"};

static void test_other_items_are_refused(void **state) {
  static const struct {
    const char *from, *to, *expected;
  } cases[] = {
      {"[\"rye 2\"], [\"oat\"]], \"acc", "[\"oat\"], [\"rye 2\"]], \"acc",
       "true class of item \"oat\": 3 in a.json, 2 in b.json; expected results of the same means and alpha"},
      {"[[\"rye 10\"], [\"rye 2\"], [\"oat\"]], \"accuracy\": 1", "null, \"accuracy\": null",
       "b.json has no truth and a.json has one; expected it in both or neither"},
  };
  struct cv_compared of[2];
  struct cv_why why;
  read_good(FIRST, &of[0]);
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    char *text = changed(SECOND, cases[i].from, cases[i].to);
    read_good(text, &of[1]);
    assert_int_equal(cv_compare_check(of, paths, &why), CV_ERR_INVALID);
    assert_string_equal(why.text, cases[i].expected);
    cv_compared_fini(&of[1]);
    free(text);
  }
  read_good(
      "{\"campaign\": \"a\", \"policy\": \"b\", \"classes\": [[\"oat\"]], \"undecided\": [], \"truth\": null, "
      "\"item_tokens\": {\"oat\": 1}, \"lies\": null, " SUMS "}",
      &of[1]);
  assert_int_equal(cv_compare_check(of, paths, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, "a.json has 3 items and b.json has 1; expected results of the same items");
  cv_compared_fini(&of[1]);
  read_good(
      "{\"campaign\": \"a\", \"policy\": \"b\", \"classes\": [[\"oat\", \"rye 2\", \"rye 11\"]], \"undecided\": "
      "[], \"truth\": null, \"item_tokens\": {\"oat\": 1, \"rye 2\": 1, \"rye 11\": 1}, \"lies\": null, " SUMS "}",
      &of[1]);
  assert_int_equal(cv_compare_check(of, paths, &why), CV_ERR_INVALID);
  assert_string_equal(why.text,
                      "a.json has item \"rye 10\" where b.json has \"rye 11\"; expected results of the same items");
  cv_compared_fini(&of[1]);
  cv_compared_fini(&of[0]);
}

static char *printed(const struct cv_compared of[2]) {
  char *text = NULL;
  size_t n = 0;
  FILE *to = open_memstream(&text, &n);
  assert_non_null(to);
  assert_int_equal(cv_compare_print(of, to), CV_OK);
  assert_int_equal(fclose(to), 0);
  return text;
}

static void read_two(const char *first, const char *second, struct cv_compared of[2]) {
  struct cv_why why = {.text = ""};
  read_good(first, &of[0]);
  read_good(second, &of[1]);
  if (cv_compare_check(of, paths, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static void free_two(struct cv_compared of[2]) {
  cv_compared_fini(&of[0]);
  cv_compared_fini(&of[1]);
}

/* In the order of the truth; oat is in class 2 by the first and truly in 3. */
static void test_print(void **state) {
  struct cv_compared of[2];
  read_two(FIRST, SECOND, of);
  char *text = printed(of);
  assert_string_equal(text,
                      "item       truth  ppar              tokens  ppar-kl           tokens\n"
                      "rye 10         1    1  right            15    1  right             3\n"
                      "rye 2          2    -                    5    2  right             1\n"
                      "oat            3    2  wrong            10    3  right             2\n"
                      "\n"
                      "right                               1 of 3                    3 of 3\n"
                      "accuracy                            0.5000                    1.0000\n"
                      "undecided                                1                         0\n"
                      "tokens                                  30                         6\n"
                      "rounds                                   2                         7\n"
                      "time                                 1.2 s                     0.5 s\n"
                      "epsilon                               0.25                     0.125\n"
                      "lies safe                                3                         -\n"
                      "lies turn                                -                         -\n"
                      "\n"
                      "ppar took 5.00 times the tokens of ppar-kl\n");
  free(text);
  free_two(of);
}

/* In the order of the first result's classes, undecided items last; nothing is right or wrong. */
static void test_print_without_truth(void **state) {
  struct cv_compared of[2];
  char *first = changed(FIRST, "[[\"rye 10\"], [\"rye 2\"], [\"oat\"]], \"accuracy\": 0.5", "null");
  char *second = changed(SECOND, "[[\"rye 10\"], [\"rye 2\"], [\"oat\"]], \"accuracy\": 1", "null");
  read_two(first, second, of);
  char *text = printed(of);
  assert_null(strstr(text, "truth"));
  assert_null(strstr(text, "right"));
  assert_null(strstr(text, "wrong"));
  assert_null(strstr(text, "accuracy"));
  assert_true(strstr(text, "\nrye 10") < strstr(text, "\noat") && strstr(text, "\noat") < strstr(text, "\nrye 2"));
  free(text);
  json_t *all = cv_compare_json(of);
  assert_true(json_is_null(json_array_get(json_object_get(all, "right"), 0)));
  assert_true(json_is_null(json_array_get(json_object_get(all, "accuracy"), 1)));
  assert_true(json_is_null(json_object_get(json_array_get(json_object_get(all, "items"), 0), "truth")));
  json_decref(all);
  free_two(of);
  free(first);
  free(second);
}

/* Long names, and ten digits of tokens, in 80 columns. */
static void test_print_is_narrow(void **state) {
  static const char name[] = "Grünkernbratlinge mit Majoran und Möhren vom Hof nebenan";
  struct cv_compared_item item = {
      .name = name, .rank_class = 99999, .truth = 99999, .is_right = true, .tokens = 9999999999};
  struct cv_compared one = {.policy = "a-policy-with-a-long-name",
                            .item = &item,
                            .items = 1,
                            .has_truth = true,
                            .accuracy = 1,
                            .tokens = 9999999999};
  const struct cv_compared of[2] = {one, one};
  char *text = printed(of), *rest = text;
  assert_non_null(strstr(text, "\nGrünkernbratlinge mi…  9999999999  right"));
  assert_non_null(strstr(text, "  a-policy-wi…      tokens  a-policy-wi…      tokens\n"));
  for (char *line = strsep(&rest, "\n"); line != NULL && strstr(line, " took ") == NULL; line = strsep(&rest, "\n")) {
    assert_in_range(cv_width_of(line), 0, 80);
  }
  free(text);
}

static void assert_json(const json_t *object, const char *key, const char *expected) {
  char *text = json_dumps(json_object_get(object, key), JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
  assert_non_null(text);
  assert_string_equal(text, expected);
  free(text);
}

static void test_json(void **state) {
  struct cv_compared of[2];
  read_two(FIRST, SECOND, of);
  json_t *all = cv_compare_json(of);
  assert_json(all, "campaigns", "[\"bread\",\"bread\"]");
  assert_json(all, "policies", "[\"ppar\",\"ppar-kl\"]");
  assert_json(all, "items",
              "[{\"name\":\"rye 10\",\"truth\":1,\"classes\":[1,1],\"right\":[true,true],\"tokens\":[15,3]},"
              "{\"name\":\"rye 2\",\"truth\":2,\"classes\":[null,2],\"right\":[null,true],\"tokens\":[5,1]},"
              "{\"name\":\"oat\",\"truth\":3,\"classes\":[2,3],\"right\":[false,true],\"tokens\":[10,2]}]");
  assert_json(all, "right", "[1,3]");
  assert_json(all, "accuracy", "[0.5,1.0]");
  assert_json(all, "undecided", "[1,0]");
  assert_json(all, "lies_safe", "[3,null]");
  assert_json(all, "lies_turn", "[null,null]");
  assert_json(all, "tokens", "[30,6]");
  assert_json(all, "rounds", "[2,7]");
  assert_json(all, "seconds", "[1.25,0.5]");
  assert_json(all, "epsilon_spent_micro", "[250000,125000]");
  assert_json(all, "tokens_ratio", "5.0");
  assert_int_equal(json_object_size(all), 13);
  json_decref(all);
  free_two(of);
}

/* A campaign can end before its first token. */
static void test_no_ratio_to_nothing(void **state) {
  struct cv_compared of[2];
  char *second = changed(SECOND, "\"tokens\": 6", "\"tokens\": 0");
  read_two(FIRST, second, of);
  char *text = printed(of);
  assert_null(strstr(text, "took"));
  free(text);
  json_t *all = cv_compare_json(of);
  assert_json(all, "tokens_ratio", "null");
  json_decref(all);
  free_two(of);
  free(second);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_read),
      cmocka_unit_test(test_a_result_is_read_as_it_is_written),
      cmocka_unit_test(test_what_is_refused),
      cmocka_unit_test(test_more_items_than_a_campaign_has),
      cmocka_unit_test(test_a_file_that_does_not_exist),
      cmocka_unit_test(test_other_items_are_refused),
      cmocka_unit_test(test_print),
      cmocka_unit_test(test_print_without_truth),
      cmocka_unit_test(test_print_is_narrow),
      cmocka_unit_test(test_json),
      cmocka_unit_test(test_no_ratio_to_nothing),
  };
  return cmocka_run_group_tests_name("launcher_compare", tests, NULL, NULL);
}
