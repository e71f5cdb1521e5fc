/* SPDX-License-Identifier: Apache-2.0 */
/* The words that a worker's own list may have are those that a broker can ask for, and what is in it is what counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "broker/mechanism/mechanism.h"
#include "worker/accept.h"

static void test_every_mechanism_of_the_broker_has_a_name_here(void **state) {
  size_t n = 0;
  for (; cv_mechanism_at(n) != NULL; n++) {
    assert_non_null(cv_accept_mechanisms[n]);
    assert_string_equal(cv_accept_mechanisms[n], cv_mechanism_at(n)->name);
  }
  assert_null(cv_accept_mechanisms[n]);
}

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
        .privatizers = "none", .mechanisms = cases[i].mechanisms, .epsilon_micro = 1000000};
    struct cv_terms terms = {.privatizer = {.name = "none"}, .epsilon_micro = 1, .tokens_per_worker = 1, .arms = 2};
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_mechanism_of_the_broker_has_a_name_here),
      cmocka_unit_test(test_every_privatizer_here_has_a_name),
      cmocka_unit_test(test_whole_words_of_the_list_are_accepted_and_no_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
