/* SPDX-License-Identifier: Apache-2.0 */
/* Messages about unknown words: a similar word is suggested, otherwise all words are listed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "common/base/nearest.h"

static const char *const words[] = {"ppar", "gap", "randomized-response"};

static void a_similar_word_is_suggested(void **state) {
  static const struct {
    const char *text, *nearest;
  } cases[] = {{"ppr", "ppar"}, {"pparr", "ppar"}, {"par", "ppar"}, {"gaps", "gap"},
               {"xyz", NULL},   {"", NULL},        {"qqqr", NULL},  {"randomised-respons", "randomized-response"}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    const char *nearest = cv_nearest(cases[i].text, words, CV_COUNT(words));
    assert_true(cases[i].nearest == NULL ? nearest == NULL : nearest != NULL && strcmp(nearest, cases[i].nearest) == 0);
  }
  assert_null(cv_nearest("ppar", words, 0));
}

static void the_message_has_the_similar_word_or_all_words(void **state) {
  struct cv_why why;
  assert_int_equal(cv_nearest_fail(&why, "policy", "ppr", words, CV_COUNT(words)), CV_ERR_NOT_FOUND);
  assert_string_equal(why.text, "unknown policy \"ppr\"; did you mean \"ppar\"?");
  assert_int_equal(cv_nearest_fail(&why, "policy", "x\n", words, CV_COUNT(words)), CV_ERR_NOT_FOUND);
  assert_string_equal(why.text, "unknown policy \"x?\"; expected one of ppar, gap or randomized-response");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_similar_word_is_suggested),
      cmocka_unit_test(the_message_has_the_similar_word_or_all_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
