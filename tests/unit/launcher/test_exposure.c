/* SPDX-License-Identifier: Apache-2.0 */
/* A few ratings of each film, drawn again and again: the printed charge of a row is what the draws add up to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "deploy/launcher/exposure.h"
#include "tests/support/folder.h"

enum { FILMS = 50, RATINGS = 9, TOKENS = 200, LIMIT = 100000 };

static struct folder folder;

/* Film i has 1 to RATINGS ratings, no two alike. */
static uint32_t ratings_of(uint32_t film) {
  return 1 + film % RATINGS;
}

static void prepare(const char *more, const char *privacy, struct cv_prepared *ret) {
  char text[20000] = "film,stars\n";
  struct cv_why why = {0};
  size_t used = strlen(text);
  for (uint32_t film = 0; film < FILMS; film++) {
    for (uint32_t i = 0; i < ratings_of(film); i++) {
      used += (size_t)snprintf(text + used, sizeof(text) - used, "%u,0.%u\n", film, i);
    }
  }
  folder_write(&folder, "films.csv", text);
  (void)snprintf(text, sizeof(text),
                 "campaign: films\nitems: {source: csv, path: films.csv, item: film, score: stars, scale: [0, 1]%s}\n"
                 "policy: {name: ppar, alpha: 0.1, tokens_per_round: 1}\nprivacy: %s\nlimits: {tokens: %d}\n",
                 more, privacy, LIMIT);
  folder_write(&folder, "films.yaml", text);
  if (cv_prepare(folder_file(&folder, "films.yaml"), 7, ret, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static struct cv_exposure find(const struct cv_prepared *prepared, const uint64_t *tokens, bool is_seed_known) {
  struct cv_exposure exposure;
  const struct cv_exposure_ask ask = {.items = &prepared->file.items,
                                      .source = &prepared->source,
                                      .spec = &prepared->file.spec,
                                      .tokens = tokens,
                                      .token_micro = cv_exposure_token_micro(&prepared->file),
                                      .is_exact = cv_spec_is_exact(&prepared->file.spec),
                                      .is_seed_known = is_seed_known};
  assert_int_equal(cv_exposure_find(&ask, &exposure), CV_OK);
  return exposure;
}

static void says(const struct cv_exposure *exposure, const char *expected) {
  char text[CV_EXPOSURE_BYTES];
  cv_exposure_text(exposure, text, sizeof(text));
  assert_string_equal(text, expected);
}

/* Told apart by their scores, which differ between a film's rows. */
static uint64_t count_most(const struct cv_prepared *prepared, const uint64_t *tokens) {
  uint64_t most = 0;
  for (uint32_t film = 0; film < FILMS; film++) {
    uint64_t uses[RATINGS] = {0};
    for (uint64_t place = 0; place < tokens[film]; place++) {
      int64_t score;
      assert_int_equal(cv_quality_score(prepared->source.quality, film, place, &score), CV_OK);
      uint64_t *one = &uses[(score * 10 + (1 << 19)) >> 20];
      most = ++*one > most ? *one : most;
    }
  }
  return most;
}

static void test_a_row_that_is_drawn_again_and_again(void **state) {
  struct cv_prepared prepared;
  uint64_t tokens[FILMS];
  char expected[CV_EXPOSURE_BYTES];
  folder_make(&folder);
  prepare(", replacement: true", "{epsilon: 0.5}", &prepared);
  struct cv_exposure exposure = find(&prepared, NULL, true);
  assert_int_equal(exposure.rows, 5 * 45 + 1 + 2 + 3 + 4 + 5); /* 50 = 5 x 9 + 5 */
  says(&exposure,
       "a row of films.csv may be used up to 100,000 times (replacement: true), 417 if items and rows come alike: "
       "epsilon up to 100,000 x 0.5 = 50000 for the score of a row; replacement: false uses each once at most");
  for (uint32_t film = 0; film < FILMS; film++) {
    tokens[film] = film == 0 ? 3 : TOKENS; /* the only rating of film 0 three times, that of film 9 two hundred */
  }
  exposure = find(&prepared, tokens, true);
  assert_true(exposure.mean == TOKENS && exposure.is_counted);
  assert_int_equal(exposure.most, count_most(&prepared, tokens));
  assert_int_equal(cv_exposure_micro(&exposure, exposure.most), TOKENS * 500000);
  tokens[9] = tokens[18] = tokens[27] = tokens[36] = tokens[45] = 5; /* all films of one rating */
  exposure = find(&prepared, tokens, true);
  assert_true(exposure.mean == TOKENS / 2.0);
  assert_int_equal(exposure.most, count_most(&prepared, tokens));
  assert_in_range(exposure.most, TOKENS / 2, TOKENS - 1);
  (void)snprintf(expected, sizeof(expected),
                 "a row of films.csv was used 100 times on average, the most of an item, and one of them %u times: "
                 "epsilon up to %u x 0.5 = %g for the score of a row; replacement: false uses each once at most",
                 (unsigned)exposure.most, (unsigned)exposure.most, (double)exposure.most / 2);
  says(&exposure, expected);
  /* Which rows were drawn is not known: the bound is the true statement. */
  exposure = find(&prepared, tokens, false);
  assert_true(!exposure.is_counted && exposure.most == TOKENS);
  cv_prepared_fini(&prepared);
  folder_remove(&folder);
}

static void test_without_replacement_a_row_is_a_token(void **state) {
  struct cv_prepared prepared;
  folder_make(&folder);
  prepare("", "{mechanism: hybrid, epsilon: 0.5, privatizer: {name: laplace, epsilon: 0.25}}", &prepared);
  struct cv_exposure exposure = find(&prepared, NULL, true);
  says(&exposure,
       "a row of films.csv may be used once at most: epsilon 0.25 for the score of a row (names of items, and how many "
       "rows each has, are public); a person with many rows is charged for each (items.worker names the column of "
       "persons)");
  cv_prepared_fini(&prepared);
  folder_remove(&folder);
}

/* Three persons take turns film by film: each is charged for the rows that it can give. */
static void test_each_person_is_charged_for_its_rows(void **state) {
  char text[1000] = "film,stars,who\n";
  struct cv_prepared prepared;
  folder_make(&folder);
  for (uint32_t i = 0; i < 12; i++) { /* ann has 6 rows, bob 4, cy 2 */
    size_t used = strlen(text);
    (void)snprintf(text + used, sizeof(text) - used, "%u,0.5,%s\n", i % 4, i < 6 ? "ann" : i < 10 ? "bob" : "cy");
  }
  folder_write(&folder, "films.csv", text);
  static const struct {
    const char *each;
    const char *expected;
  } cases[] = {
      {"6, repeat: true",
       "a row of films.csv may be used once at most: epsilon 0.5; each of 3 persons is a worker and is charged that "
       "for every row it gives, up to 6 x 0.5 = 3"},
      {"3, repeat: true",
       "a row of films.csv may be used once at most: epsilon 0.5; each of 3 persons is a worker and is charged that "
       "for every row it gives, up to 3 x 0.5 = 1.5; tokens_per_worker leaves 4 of its 12 rows unused"},
      {"4",
       "a row of films.csv may be used once at most: epsilon 0.5; each of 3 persons is a worker and is charged that "
       "for every row it gives, up to 4 x 0.5 = 2; one row of an item for each person, and tokens_per_worker, leave 2 "
       "of its 12 rows unused"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_why why = {0};
    (void)snprintf(text, sizeof(text),
                   "campaign: films\nitems: {source: csv, path: films.csv, item: film, score: stars, scale: [0, 1], "
                   "worker: who}\npolicy: {name: ppar, alpha: 0.1, tokens_per_round: 1}\n"
                   "privacy: {epsilon: 0.5, tokens_per_worker: %s}\nlimits: {tokens: 100}\n",
                   cases[i].each);
    folder_write(&folder, "films.yaml", text);
    assert_int_equal(cv_prepare(folder_file(&folder, "films.yaml"), 7, &prepared, &why), CV_OK);
    struct cv_exposure exposure = find(&prepared, NULL, true);
    says(&exposure, cases[i].expected);
    cv_prepared_fini(&prepared);
  }
  folder_remove(&folder);
}

static void test_exact_sums_have_no_epsilon_and_a_law_no_rows(void **state) {
  struct cv_prepared prepared;
  struct cv_exposure exposure;
  folder_make(&folder);
  prepare(", replacement: true", "{mechanism: none, third_party: trusted}", &prepared);
  exposure = find(&prepared, NULL, true);
  says(&exposure,
       "a row of films.csv may be used up to 100,000 times (replacement: true), 417 if items and rows come alike: no "
       "epsilon, the third-party sees exact sums");
  prepared.file.items.source = CV_SOURCE_GIVEN;
  exposure = find(&prepared, NULL, true);
  says(&exposure, "");
  prepared.file.items.source = CV_SOURCE_CSV;
  cv_prepared_fini(&prepared);
  folder_remove(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_row_that_is_drawn_again_and_again),
      cmocka_unit_test(test_without_replacement_a_row_is_a_token),
      cmocka_unit_test(test_each_person_is_charged_for_its_rows),
      cmocka_unit_test(test_exact_sums_have_no_epsilon_and_a_law_no_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
