/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's own list decides what it accepts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "worker/accept.h"

static void test_every_privatizer_here_has_a_name(void **state) {
  size_t n = 0;
  for (; cv_local_names[n] != NULL; n++) {
    assert_non_null(cv_privatizer_find(cv_local_names[n]));
  }
  assert_null(cv_privatizer_at(n));
}

static void test_whole_words_of_the_list_are_accepted_and_no_others(void **state) {
  static const struct {
    const char *mechanisms, *asked;
    bool is_accepted;
  } cases[] = {
      {"hybrid", "hybrid", true},          {"kary, hybrid", "hybrid", true},    {"kary\thybrid", "kary", true},
      {"hybrid-printed", "hybrid", false}, {"hybrid", "hybrid-printed", false}, {"kary,,batch", "", false},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    const struct cv_accept accept = {
        .requesters = "alice", .privatizers = "none", .mechanisms = cases[i].mechanisms, .epsilon_micro = 1000000};
    struct cv_terms terms = {
        .requester = "alice", .privatizer = {.name = "none"}, .epsilon_micro = 1, .tokens_per_worker = 1, .arms = 2};
    struct cv_privatizer *privatizer;
    struct cv_why why;
    strcpy(terms.mechanism.name, cases[i].asked);
    enum cv_err err = cv_accept_terms(&accept, &terms, &privatizer, &why);
    assert_int_equal(err, cases[i].is_accepted ? CV_OK : CV_ERR_DENIED);
    if (err == CV_OK) {
      cv_privatizer_free(privatizer);
    }
  }
}

/* With epsilon 10^-6 and delta .999999 a thousand workers with a score of 1 give an exact sum of 1000. */
static void test_delta_is_accepted_up_to_the_limit_and_by_default_not_at_all(void **state) {
  struct cv_accept accept = {
      .requesters = "any", .privatizers = "randomized-response", .mechanisms = "none", .epsilon_micro = 2000000};
  struct cv_terms terms = {
      .privatizer = {.name = "randomized-response"}, .mechanism = {.name = "none"}, .tokens_per_worker = 1, .arms = 2};
  static const struct {
    const char *first, *second;
    double number[2];
  } ways[] = {{"epsilon", "delta", {1e-6, .5}}, {"p00", "p11", {.6, .6}}};
  for (size_t i = 0; i < CV_COUNT(ways); i++) {
    terms.privatizer.params.count = 0;
    struct cv_privatizer *privatizer;
    struct cv_why why;
    assert_int_equal(cv_params_set_number(&terms.privatizer.params, ways[i].first, ways[i].number[0]), CV_OK);
    assert_int_equal(cv_params_set_number(&terms.privatizer.params, ways[i].second, ways[i].number[1]), CV_OK);
    assert_int_equal(cv_params_set_number(&terms.privatizer.params, "delta", .5), CV_OK);
    accept.delta_pico = 0;
    assert_int_equal(cv_accept_terms(&accept, &terms, &privatizer, &why), CV_ERR_DENIED);
    assert_string_equal(why.text,
                        "the privatizer's delta 0.5 is not accepted here; expected at most 0, which is accept.delta");
    accept.delta_pico = 500000000000;
    assert_int_equal(cv_accept_terms(&accept, &terms, &privatizer, &why), CV_OK);
    cv_privatizer_free(privatizer);
  }
}

/* With these privatizers each further token reveals more of the same score: a worker limits them by default. */
static void test_privatizers_with_an_epsilon(void **state) {
  assert_false(cv_accept_is_local("none"));
  assert_true(cv_accept_is_local("laplace"));
  assert_true(cv_accept_is_local("none, randomized-response"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_privatizer_here_has_a_name),
      cmocka_unit_test(test_delta_is_accepted_up_to_the_limit_and_by_default_not_at_all),
      cmocka_unit_test(test_whole_words_of_the_list_are_accepted_and_no_others),
      cmocka_unit_test(test_privatizers_with_an_epsilon),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
