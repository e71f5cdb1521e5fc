/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const radius_words[] = {"printed", "proof", "sound", NULL};
static const char *const one_word[] = {"only", NULL};
static const struct cv_param_rule rules[] = {
    {.key = "alpha", .low = 0, .high = 1, .high_open = true, .fallback = (double)NAN},
    {.key = "delta", .low = 0, .high = 1, .low_open = true, .high_open = true, .fallback = 0.1},
    {.key = "tokens", .low = 1, .high = 1e6, .whole = true, .fallback = 6000},
    {.key = "scale", .low = 0, .high = (double)INFINITY, .low_open = true, .fallback = 1},
    {.key = "radius", .choices = radius_words, .fallback_text = "sound"},
};

static struct cv_params with_number(const char *key, double number) {
  struct cv_params params = {0};
  assert_int_equal(cv_params_set_number(&params, "alpha", 0.1), CV_OK);
  assert_int_equal(cv_params_set_number(&params, key, number), CV_OK);
  return params;
}

static struct cv_params with_text(const char *key, const char *text) {
  struct cv_params params = {0};
  assert_int_equal(cv_params_set_number(&params, "alpha", 0.1), CV_OK);
  assert_int_equal(cv_params_set_text(&params, key, text), CV_OK);
  return params;
}

static void defaults_are_filled_in(void **state) {
  struct cv_params params = with_number("alpha", 0);
  const struct cv_param *offender;
  assert_int_equal(cv_params_check(&params, rules, CV_COUNT(rules), &offender, NULL), CV_OK);
  assert_int_equal(params.count, 5);
  assert_true(cv_params_number(&params, "alpha") == 0);
  assert_true(cv_params_number(&params, "delta") == 0.1);
  assert_true(cv_params_number(&params, "tokens") == 6000);
  assert_true(cv_params_number(&params, "scale") == 1);
  assert_string_equal(cv_params_text(&params, "radius"), "sound");
}

static void assert_refused(struct cv_params params, const char *key, const char *message) {
  const struct cv_param *offender = NULL;
  struct cv_why why = {0};
  assert_int_equal(cv_params_check(&params, rules, CV_COUNT(rules), &offender, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, message);
  assert_non_null(offender);
  assert_string_equal(offender->key, key);
}

static void what_does_not_fit_is_named(void **state) {
  assert_refused(with_number("alpha", 1), "alpha", "alpha is 1; expected a number of at least 0 and below 1");
  assert_refused(with_number("alpha", -0.5), "alpha", "alpha is -0.5; expected a number of at least 0 and below 1");
  assert_refused(with_number("alpha", (double)NAN), "alpha",
                 "alpha is nan; expected a number of at least 0 and below 1");
  assert_refused(with_number("delta", 0), "delta", "delta is 0; expected a number above 0 and below 1");
  assert_refused(with_number("tokens", 1.5), "tokens",
                 "tokens is 1.5; expected a whole number of at least 1 and at most 1000000");
  assert_refused(with_number("tokens", 1000001), "tokens",
                 "tokens is 1000001; expected a whole number of at least 1 and at most 1000000");
  assert_refused(with_number("scale", 0), "scale", "scale is 0; expected a number above 0");
  assert_refused(with_text("tokens", "many"), "tokens",
                 "tokens is \"many\"; expected a whole number of at least 1 and at most 1000000");
  assert_refused(with_text("radius", "small"), "radius", "radius is \"small\"; expected printed, proof or sound");
  assert_refused(with_number("radius", 3), "radius", "radius is 3; expected printed, proof or sound");
  assert_refused(with_number("bogus", 3), "bogus",
                 "unknown key \"bogus\"; expected alpha, delta, tokens, scale or radius");
}

static void what_fits_is_left_alone(void **state) {
  static const double tokens[] = {1, 1000000};
  for (size_t i = 0; i < CV_COUNT(tokens); i++) {
    struct cv_params params = with_number("tokens", tokens[i]);
    const struct cv_param *offender;
    assert_int_equal(cv_params_check(&params, rules, CV_COUNT(rules), &offender, NULL), CV_OK);
    assert_true(cv_params_number(&params, "tokens") == tokens[i]);
  }
  struct cv_params params = with_text("radius", "printed");
  const struct cv_param *offender;
  assert_int_equal(cv_params_check(&params, rules, CV_COUNT(rules), &offender, NULL), CV_OK);
  assert_string_equal(cv_params_text(&params, "radius"), "printed");
}

static void what_is_missing_is_named(void **state) {
  struct cv_params params = {0};
  const struct cv_param *offender = &params.item[0];
  struct cv_why why = {0};
  assert_int_equal(cv_params_check(&params, rules, CV_COUNT(rules), &offender, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, "missing alpha; expected a number of at least 0 and below 1");
  assert_null(offender);
  const struct cv_param_rule word = {.key = "which", .choices = one_word};
  assert_int_equal(cv_params_check(&params, &word, 1, &offender, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, "missing which; expected only");
}

static void what_is_there_twice_is_named(void **state) {
  struct cv_params params = {.count = CV_PARAMS_MAX};
  const struct cv_param *offender;
  struct cv_why why = {0};
  for (uint32_t i = 0; i < params.count; i++) {
    params.item[i] = (struct cv_param){.key = "alpha", .number = 0.1 * (i + 1)};
  }
  assert_int_equal(cv_params_check(&params, rules, CV_COUNT(rules), &offender, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, "alpha is given twice");
  assert_ptr_equal(offender, &params.item[1]);
}

static void setting_replaces_and_is_bounded(void **state) {
  struct cv_params params = {0};
  char long_text[CV_PARAM_TEXT + 1];
  memset(long_text, 'x', CV_PARAM_TEXT);
  long_text[CV_PARAM_TEXT] = '\0';
  assert_int_equal(cv_params_set_number(&params, "a", 1), CV_OK);
  assert_int_equal(cv_params_set_text(&params, "a", "b"), CV_OK);
  assert_int_equal(params.count, 1);
  assert_string_equal(cv_params_text(&params, "a"), "b");
  assert_int_equal(cv_params_set_number(&params, long_text, 1), CV_ERR_LIMIT);
  assert_int_equal(cv_params_set_text(&params, "a", long_text), CV_ERR_LIMIT);
  assert_int_equal(cv_params_set_text(&params, "a", long_text + 1), CV_OK);
  for (int i = 1; i < CV_PARAMS_MAX; i++) {
    char key[16];
    (void)snprintf(key, sizeof(key), "k%d", i);
    assert_int_equal(cv_params_set_number(&params, key, i), CV_OK);
  }
  assert_int_equal(cv_params_set_number(&params, "more", 1), CV_ERR_LIMIT);
  assert_int_equal(cv_params_set_number(&params, "k3", 33), CV_OK);
  assert_true(cv_params_number(&params, "k3") == 33);
  assert_null(cv_params_find(&params, "more"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(defaults_are_filled_in),          cmocka_unit_test(what_does_not_fit_is_named),
      cmocka_unit_test(what_fits_is_left_alone),         cmocka_unit_test(what_is_missing_is_named),
      cmocka_unit_test(setting_replaces_and_is_bounded), cmocka_unit_test(what_is_there_twice_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
