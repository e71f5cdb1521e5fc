/* SPDX-License-Identifier: Apache-2.0 */
/* Names in lines of text: their columns, where they are cut, and what keeps them from turning the line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdio.h>

#include "common/base/text.h"
#include "common/base/width.h"

#define HEBREW "\u05e9\u05dc\u05d5\u05dd"
#define FSI    "\u2068"
#define PDI    "\u2069"

static void test_columns_are_those_of_a_terminal(void **state) {
  static const struct {
    const char *text;
    size_t columns;
  } of[] = {{"", 0},
            {"Roma", 4},
            {"Caf\u00e9", 4},
            {"Cafe\u0301", 4},
            {"\u6771\u4eac", 4}, /* Tokyo */
            {"\ud55c\uae00", 4}, /* Hangul */
            {HEBREW, 4},
            {FSI HEBREW PDI, 4},
            {"\u05e9\u05c1\u05b8", 1},       /* a letter with two points */
            {"\u0915\u094d\u200d\u0937", 2}, /* a mark and a joiner */
            {"\U0001f600", 2}};
  for (size_t i = 0; i < CV_COUNT(of); i++) {
    assert_int_equal(cv_width_of(of[i].text), of[i].columns);
  }
}

static void test_a_name_is_cut_between_characters(void **state) {
  assert_string_equal(cv_width_cut("Roma", 4, "…").text, "Roma");
  assert_string_equal(cv_width_cut("Romana", 4, "…").text, "Rom…");
  assert_string_equal(cv_width_cut("Cafe\u0301s", 5, "…").text, "Cafe\u0301s");
  assert_string_equal(cv_width_cut("Cafe\u0301 1", 5, "…").text, "Cafe\u0301…");
  assert_string_equal(cv_width_cut("\u6771\u4eac\u90fd", 4, "…").text, "\u6771…"); /* half of the second does not fit */
  assert_string_equal(cv_width_cut(HEBREW " 1234", 6, "~").text, FSI HEBREW " ~" PDI);
  assert_int_equal(cv_width_fit("ab\u6771", 3), 2);
  assert_int_equal(cv_width_fit("e\u0301", 1), 3);
}

static void test_what_runs_from_right_to_left_is_isolated(void **state) {
  static const char *const runs[] = {HEBREW,         "Caf\u00e9 " HEBREW,
                                     "\u0645\u0642", "\u0660",
                                     "\u07ca",       "\u0590",
                                     "\u07ff",       "\u0800",
                                     "\u08ff",       "\ufb1d",
                                     "\ufdff",       "\ufe70",
                                     "\U00010800",   "\U00010fff",
                                     "\U0001e900",   "\U0001efff",
                                     "C\u200f++"};
  static const char *const stays[] = {"",       "Roma",   "Caf\u00e9",  "\u058f",     "\u0900",
                                      "\ufb1c", "\ufe00", "\U00010000", "\U00011000", "\U0001f600",
                                      "\u2013", "\u6771", "\U0001e7ff", "\U0001f000"};
  for (size_t i = 0; i < CV_COUNT(runs); i++) {
    char expected[64];
    (void)snprintf(expected, sizeof(expected), FSI "%s" PDI, runs[i]);
    assert_true(cv_text_runs_left(runs[i]));
    assert_string_equal(cv_text_shown(runs[i]).text, expected);
  }
  for (size_t i = 0; i < CV_COUNT(stays); i++) {
    assert_false(cv_text_runs_left(stays[i]));
    assert_string_equal(cv_text_shown(stays[i]).text, stays[i]);
  }
}

static void test_input_in_a_message_does_not_turn_it(void **state) {
  assert_string_equal(cv_text_quote("a\u202eb\u2028").text, "\"a???b???\"");
  assert_string_equal(cv_text_quote("\u2067a\u2069").text, "\"???a???\"");
  assert_string_equal(cv_text_quote(FSI "a" PDI).text, "\"???a???\"");
  assert_string_equal(cv_text_quote(HEBREW " 1").text, "\"" FSI HEBREW " 1" PDI "\"");
  assert_string_equal(cv_text_piece(HEBREW).text, FSI HEBREW PDI);
  char long_name[200];
  for (size_t i = 0; i < sizeof(long_name) - 1; i++) {
    long_name[i] = i % 2 == 0 ? '\xd7' : '\x90';
  }
  long_name[sizeof(long_name) - 1] = '\0';
  assert_non_null(strstr(cv_text_quote(long_name).text, PDI "...\""));
  assert_non_null(strstr(cv_text_piece(long_name).text, "?" PDI)); /* 63 bytes: half a letter */
}

static void test_cleaned_text_keeps_isolates_only(void **state) {
  static const char *const kept[] = {FSI HEBREW PDI, "\u200d", "\u200e", "\u2010", "\u202f", "\u2070", "\u20ac"};
  static const char *const turning[] = {"\u2028", "\u2029", "\u202a", "\u202b", "\u202c",
                                        "\u202d", "\u202e", "\u2066", "\u2067"};
  char text[64];
  for (size_t i = 0; i < CV_COUNT(kept); i++) {
    (void)snprintf(text, sizeof(text), "%s", kept[i]);
    cv_text_clean(text, strlen(text));
    assert_string_equal(text, kept[i]);
  }
  for (size_t i = 0; i < CV_COUNT(turning); i++) {
    (void)snprintf(text, sizeof(text), "a%sb", turning[i]);
    cv_text_clean(text, strlen(text));
    assert_string_equal(text, "a???b");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_columns_are_those_of_a_terminal),
      cmocka_unit_test(test_a_name_is_cut_between_characters),
      cmocka_unit_test(test_what_runs_from_right_to_left_is_isolated),
      cmocka_unit_test(test_input_in_a_message_does_not_turn_it),
      cmocka_unit_test(test_cleaned_text_keeps_isolates_only),
  };
  return cmocka_run_group_tests_name("width", tests, NULL, NULL);
}
