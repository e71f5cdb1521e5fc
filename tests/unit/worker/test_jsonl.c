/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/folder.h"
#include "tests/unit/worker/data.h"
#include "tests/unit/worker/table.h"
#include "worker/feed.h"

static const struct cv_items_csv plain = {
    .format = CV_FORMAT_JSONL, .item_column = "item", .score_column = "score", .scale = {.low = 0, .high = 1}};

static void good_as(const struct cv_items_csv *how, const char *text, const char *expected, const char *notes) {
  struct folder folder;
  folder_make(&folder);
  (void)write_text(&folder, "r.jsonl", text);
  assert_data(&folder, how, "r.jsonl", expected, notes);
  folder_remove(&folder);
}

static void good(const char *text, const char *expected) {
  good_as(&plain, text, expected, NULL);
}

static void bad_bytes(const char *text, size_t n, enum cv_err err, const char *line) {
  struct folder folder;
  folder_make(&folder);
  (void)write_bytes(&folder, "r.jsonl", text, n);
  assert_bad_data(&folder, &plain, "r.jsonl", err, line);
  folder_remove(&folder);
}

static void bad(const char *text, const char *line) {
  bad_bytes(text, strlen(text), CV_ERR_INVALID, line);
}

static void test_objects(void **state) {
  good("{\"item\":\"b\",\"score\":0.5}\n{\"score\":1,\"item\":\"a\"}\n{\"item\":\"b\",\"score\":0}\n",
       "a:1000 b:500,0");
  good("{\"item\":\"b\",\"score\":5e-1}", "b:500");
  good("\xef\xbb\xbf{\"item\":\"a\",\"score\":1}\r\n\r\n  \n{\"item\":\"a\",\"score\":0}\n", "a:1000,0");
  good("{\"item\":10,\"score\":1}\n{\"item\":9,\"score\":\"0.5\"}\n", "9:500 10:1000");
  good("{\"item\":\"a\\u00e4\",\"score\":1,\"deep\":{\"item\":[1,{\"score\":2}]}}\n", "a\xc3\xa4:1000");
}

static void test_rows_without_a_score(void **state) {
  struct cv_items_csv skip = plain;
  skip.skips_missing = true;
  good_as(&skip,
          "{\"item\":\"a\",\"score\":null}\n{\"item\":\"a\"}\n{\"item\":\"a\",\"score\":\"\"}\n"
          "{\"item\":\"a\",\"score\":\"NaN\"}\n{\"item\":\"a\",\"score\":1}\n",
          "a:1000", "r.jsonl: 4 of 5 rows without a score are skipped, the first at line 1\n");
  bad("{\"item\":\"a\",\"score\":1}\n\n{\"item\":\"a\",\"score\":null}\n",
      ":3: score \"null\" is no score; expected a number, or items.missing: skip to leave such rows out");
}

static void test_keys_that_are_not_used_are_named_once(void **state) {
  good_as(&plain, "{\"item\":\"a\",\"score\":1,\"date\":1}\n{\"item\":\"a\",\"score\":1,\"weight\":1,\"date\":2}\n",
          "a:1000,1000", "r.jsonl: columns not used: date, weight\n");
}

static void test_persons(void **state) {
  struct folder folder;
  struct cv_items_csv ask = plain;
  struct cv_data data = {0};
  char path[320];
  folder_make(&folder);
  (void)snprintf(path, sizeof(path), "%s",
                 write_text(&folder, "r.jsonl",
                            "{\"item\":\"a\",\"score\":1,\"who\":7}\n"
                            "{\"item\":\"b\",\"score\":0,\"who\":\"Ann\"}\n"
                            "{\"item\":\"b\",\"score\":1,\"who\":7}\n"));
  (void)snprintf(ask.worker_column, sizeof(ask.worker_column), "who");
  ask.file = path;
  assert_int_equal(cv_data_read(&ask, false, &data, NULL), CV_OK);
  assert_int_equal(data.persons.persons, 2);
  assert_memory_equal(data.persons.start, ((uint64_t[]){0, 2, 3}), 3 * sizeof(uint64_t));
  assert_memory_equal(data.persons.arm, ((uint32_t[]){0, 1, 1}), 3 * sizeof(uint32_t));
  cv_data_fini(&data);
  folder_remove(&folder);
}

static void test_bad_lines(void **state) {
#define FIRST "{\"item\":\"a\",\"score\":1}\n"
  bad(FIRST "\n{\"item\":\"a\",\"score\":}\n", ":3: not JSON, unexpected token near '}'; expected one object a line");
  bad(FIRST "{\"item\":\"a\",\"score\":1} x\n",
      ":2: not JSON, end of file expected near 'x'; expected one object a line");
  bad(FIRST "{\"item\":\"a\",\"score\":NaN}\n", ":2: not JSON, invalid token near 'NaN'; expected one object a line");
  bad("[\n" FIRST "]\n", ":1: not JSON, ']' expected near end of file; expected one object a line");
  bad("[1]\n", ":1: not a JSON object; expected one object a line");
  bad("{\"item\":\"a\",\"item\":\"b\",\"score\":1}\n",
      ":1: not JSON, duplicate object key near '\"item\"'; expected one object a line");
  bad("{\"score\":1}\n", ":1: no key \"item\"; expected a text or a whole number");
  bad("{\"item\":1.5,\"score\":1}\n", ":1: another kind of value for \"item\"; expected a text or a whole number");
  bad("{\"item\":null,\"score\":1}\n", ":1: another kind of value for \"item\"; expected a text or a whole number");
  bad("{\"item\":\"\",\"score\":1}\n", ":1: item \"\" is not a valid name; expected 1 to 255 bytes of printable UTF-8");
  bad("{\"item\":\"a\",\"score\":true}\n", ":1: another kind of value for \"score\"; expected a number");
  bad("{\"item\":\"a\",\"score\":\"high\"}\n", ":1: score \"high\" is not a number");
  bad("{\"item\":\"a\",\"score\":7}\n", ":1: score 7 is outside 0..1, the campaign's scale" OR_CLAMPED);
  bad("{\"item\":\"a\",\"score\":1e400}\n",
      ":1: not JSON, real number overflow near '1e400'; expected one object a line");
  bad("", ": no rows in the file; expected at least one");
  bad("\n\n", ": no rows in the file; expected at least one");
  bad_bytes("{\"item\":\"a\0b\",\"score\":1}\n", 25, CV_ERR_INVALID,
            ":1: not JSON, control character 0x0 near '\"a'; expected one object a line");
}

static void test_the_length_of_a_line_is_bounded(void **state) {
  static char text[CV_FEED_LINE_BYTES + 100];
  memset(text, ' ', sizeof(text));
  bad_bytes(text, sizeof(text), CV_ERR_LIMIT, ":1: the line is longer than 1048576 bytes");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_objects),
      cmocka_unit_test(test_rows_without_a_score),
      cmocka_unit_test(test_keys_that_are_not_used_are_named_once),
      cmocka_unit_test(test_persons),
      cmocka_unit_test(test_bad_lines),
      cmocka_unit_test(test_the_length_of_a_line_is_bounded),
  };
  return cmocka_run_group_tests_name("jsonl", tests, NULL, NULL);
}
