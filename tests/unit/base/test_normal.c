/* SPDX-License-Identifier: Apache-2.0 */
/* The normal form of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdio.h>

#include "common/base/names.h"
#include "common/base/normal.h"

static void assert_becomes(const char *typed, const char *expected) {
  char normal[CV_ITEM_BYTES], again[CV_ITEM_BYTES];
  struct cv_why why = {.text = ""};
  assert_int_equal(cv_name_normalize(typed, normal, sizeof(normal), &why), CV_OK);
  assert_string_equal(normal, expected);
  assert_int_equal(cv_name_normalize(normal, again, sizeof(again), NULL), CV_OK);
  assert_string_equal(again, normal);
  assert_true(cv_name_is_normal(normal, CV_ITEM_BYTES));
  assert_int_equal(cv_name_is_normal(typed, CV_ITEM_BYTES), strcmp(typed, expected) == 0);
}

static void assert_fails(enum cv_err err, const char *typed, const char *words) {
  char normal[CV_ITEM_BYTES] = "as before";
  struct cv_why why = {.text = ""};
  assert_int_equal(cv_name_normalize(typed, normal, sizeof(normal), &why), err);
  assert_string_equal(normal, "as before");
  if (strstr(why.text, words) == NULL) {
    fail_msg("%s", why.text);
  }
  assert_false(cv_name_is_normal(typed, CV_ITEM_BYTES));
}

static void assert_refused(const char *typed, const char *words) {
  assert_fails(CV_ERR_INVALID, typed, words);
}

static void assert_no_name(const char *typed) {
  assert_fails(CV_ERR_FORMAT, typed, "\" is not a valid name; expected 1 to 255 bytes of printable UTF-8");
}

static void test_ascii_stays(void **state) {
  assert_becomes("Roma", "Roma");
  assert_becomes("Golden  Wok, 2nd \"floor\"", "Golden  Wok, 2nd \"floor\"");
  assert_becomes("7", "7");
  assert_becomes("~!", "~!");
}

static void test_one_letter_in_two_spellings(void **state) {
  assert_becomes("Cafe\u0301", "Caf\u00e9");
  assert_becomes("Caf\u00e9", "Caf\u00e9");
  assert_becomes("\u1112\u1161\u11ab", "\ud55c");       /* jamo and a syllable */
  assert_becomes("\u212b", "\u00c5");                   /* the sign of angstrom and a letter */
  assert_becomes("q\u0307\u0323", "q\u0323\u0307");     /* the order of two marks */
  assert_becomes("\u0958", "\u0915\u093c");             /* what is never composed */
  assert_becomes("\ufb01ne \u2460", "\ufb01ne \u2460"); /* compatible, but another character */
}

static void test_blanks_at_the_ends_go(void **state) {
  static const char *const blanks[] = {" ",      "\t",     "\n",     "\r\n",   "\v",     "\f",      "\xc2\x85",
                                       "\u00a0", "\u1680", "\u2000", "\u2003", "\u200a", "\u2028",  "\u2029",
                                       "\u202f", "\u205f", "\u2800", "\u3000", "\ufeff", " \u00a0 "};
  for (size_t i = 0; i < CV_COUNT(blanks); i++) {
    char typed[64];
    (void)snprintf(typed, sizeof(typed), "%sNew York%s", blanks[i], blanks[i]);
    assert_becomes(typed, "New York");
    assert_no_name(blanks[i]);
  }
  assert_becomes("New\u00a0York", "New\u00a0York");
  assert_becomes("\u6771\u3000\u4eac", "\u6771\u3000\u4eac");
}

static void test_what_turns_a_line_is_refused(void **state) {
  assert_refused("a\u202eb",
                 "\"a???b\" has U+202E, which turns the direction of what follows; expected a name without it");
  assert_refused("\u202aRoma", "U+202A");
  assert_refused("Roma\u202c", "U+202C");
  assert_refused("\u05d0\u2067b", "U+2067");
  assert_refused("\u2066Roma\u2069", "\"???Roma???\" has U+2066");
  assert_refused("a\u2068b\u2069", "U+2068");
}

static void test_what_is_not_seen_is_refused(void **state) {
  static const char *const unseen[] = {"\u200b", "\u2060", "\u2064", "\u206a", "\u00ad",     "\u034f",    "\u180e",
                                       "\u115f", "\u3164", "\uffa0", "\ufff9", "\U000e0001", "\U000e0041"};
  for (size_t i = 0; i < CV_COUNT(unseen); i++) {
    char typed[64];
    (void)snprintf(typed, sizeof(typed), "Ro%sma", unseen[i]);
    assert_refused(typed, ", which cannot be seen; expected a name without it");
    (void)snprintf(typed, sizeof(typed), "Roma%s", unseen[i]);
    assert_refused(typed, ", which cannot be seen; expected a name without it");
  }
  assert_refused("Ro\ufeffma", "has U+FEFF");
  assert_refused("Ro\u2028ma", "\"Ro???ma\" has U+2028");
}

static void test_what_scripts_and_emoji_need_stays(void **state) {
  static const char *const needed[] = {
      "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",                       /* Persian, with a non-joiner */
      "\u0915\u094d\u200d\u0937",                                               /* Devanagari, with a joiner */
      "\u0d28\u0d4d\u200d",                                                     /* Malayalam, a joiner at the end */
      "\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f",                       /* Arabic, with vowels */
      "\u0645\u0642\u0647\u0649 C++\u200f",                                     /* a mark of direction with effect */
      "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",                             /* Hebrew, with points */
      "\U0001f469\u200d\U0001f4bb \u2764\ufe0f",                                /* joined emoji, and one in colour */
      "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", /* the flag of Scotland */
      "\U0001f1e8\U0001f1ed",
      "7\ufe0f\u20e3",
      "\u845b\U000e0100",
      "\u0600\u0661"};
  char normal[CV_ITEM_BYTES];
  for (size_t i = 0; i < CV_COUNT(needed); i++) {
    assert_int_equal(cv_name_normalize(needed[i], normal, sizeof(normal), NULL), CV_OK);
    assert_int_equal(cv_name_normalize(normal, normal, sizeof(normal), NULL), CV_OK);
    assert_true(i == 3 || i == 5 || strcmp(normal, needed[i]) == 0); /* of these the marks have another order */
  }
  assert_refused("\U0001f3f4\U000e0067", "has U+E0067");
  assert_refused("\U0001f469\U000e0067\U000e007f", "has U+E0067");
}

/* Copied from elsewhere, they often stand around words that run from left to right. */
static void test_marks_of_direction_without_effect_go(void **state) {
  assert_becomes("\u200eRoma\u200e", "Roma");
  assert_becomes("Ro\u200fma \u061c", "Roma");
  assert_becomes("e\u200e\u0301", "\u00e9");
  assert_no_name("\u200e\u200f");
}

static void test_what_is_no_text_is_refused(void **state) {
  static const char *const bad[] = {"",     " ",     "a\tb",     "a\nb",        "\x7f",         "a\x1b[31m",
                                    "\xff", "a\xc3", "\xc0\xaf", "a\xc2\x85 b", "\xed\xa0\x80", "\xf4\x90\x80\x80"};
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    assert_no_name(bad[i]);
  }
}

static void fill(char *to, const char *with, size_t times) {
  for (to[0] = '\0'; times > 0; times--) {
    memcpy(to + strlen(to), with, strlen(with) + 1);
  }
}

/* What counts is the normal form. */
static void test_the_length_is_bounded(void **state) {
  char typed[5000], expected[1000];
  fill(typed, "x", 255);
  assert_becomes(typed, typed);
  fill(typed, "x", 256);
  assert_no_name(typed);
  fill(typed, "e\u0301", 127);
  fill(expected, "\u00e9", 127);
  assert_becomes(typed, expected);
  fill(typed, "e\u0301", 128);
  assert_no_name(typed);
  fill(typed, "\u1f82", 1024);
  assert_no_name(typed);
  fill(typed, "x", 4999);
  assert_no_name(typed);
  char little[8] = "before";
  assert_int_equal(cv_name_normalize("12345678", little, sizeof(little), NULL), CV_ERR_FORMAT);
  assert_int_equal(cv_name_normalize("1234567", little, sizeof(little), NULL), CV_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ascii_stays),
      cmocka_unit_test(test_one_letter_in_two_spellings),
      cmocka_unit_test(test_blanks_at_the_ends_go),
      cmocka_unit_test(test_what_turns_a_line_is_refused),
      cmocka_unit_test(test_what_is_not_seen_is_refused),
      cmocka_unit_test(test_what_scripts_and_emoji_need_stays),
      cmocka_unit_test(test_marks_of_direction_without_effect_go),
      cmocka_unit_test(test_what_is_no_text_is_refused),
      cmocka_unit_test(test_the_length_is_bounded),
  };
  return cmocka_run_group_tests_name("normal", tests, NULL, NULL);
}
