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

#include "common/base/grid.h"
#include "tests/support/folder.h"
#include "tests/unit/worker/data.h"
#include "tests/unit/worker/table.h"
#include "worker/data.h"
#include "worker/records.h"

static const struct cv_items_csv plain = {
    .item_column = "item", .score_column = "score", .delimiter = ',', .scale = {.low = 0, .high = 1}};

static enum cv_err read_as(const struct folder *folder, const struct cv_items_csv *how, const char *text, size_t n,
                           struct cv_data *data, struct cv_why *why) {
  struct cv_items_csv ask = *how;
  char path[320];
  (void)snprintf(path, sizeof(path), "%s", write_bytes(folder, "data.csv", text, n));
  ask.file = path;
  return cv_data_read(&ask, false, data, why);
}

static void good_as(const struct cv_items_csv *how, const char *text, size_t n, const char *expected) {
  struct folder folder;
  folder_make(&folder);
  (void)write_bytes(&folder, "data.csv", text, n);
  assert_data(&folder, how, "data.csv", expected, NULL);
  folder_remove(&folder);
}

static void good(const char *text, const char *expected) {
  good_as(&plain, text, strlen(text), expected);
}

static void bad_as(const struct cv_items_csv *how, const char *text, size_t n, enum cv_err err, const char *line) {
  struct folder folder;
  folder_make(&folder);
  (void)write_bytes(&folder, "data.csv", text, n);
  assert_bad_data(&folder, how, "data.csv", err, line);
  folder_remove(&folder);
}

static void bad(const char *text, const char *line) {
  bad_as(&plain, text, strlen(text), CV_ERR_INVALID, line);
}

static void test_plain_rows(void **state) {
  good("item,score\nb,0.5\na,1\nb,0\n", "a:1000 b:500,0");
  good("item,score\nb,0.5", "b:500");
  good("score,other,item\n0.25,x,a\n", "a:250");
}

static const struct cv_items_csv persons = {.item_column = "item",
                                            .score_column = "score",
                                            .worker_column = "who",
                                            .delimiter = ',',
                                            .scale = {.low = 0, .high = 1}};

/* Each person's rows in the file's order. */
static void test_rows_of_persons(void **state) {
  static const char text[] = "item,score,who\nb,1,Zoe\na,0,ann\na,1,Zoe\nb,0,Ann\na,0.5,ann\n";
  struct folder folder;
  struct cv_data data = {0};
  struct cv_why why = {0};
  folder_make(&folder);
  assert_int_equal(read_as(&folder, &persons, text, strlen(text), &data, &why), CV_OK);
  assert_int_equal(data.persons.persons, 3);
  assert_memory_equal(data.persons.start, ((uint64_t[]){0, 1, 3, 5}), 4 * sizeof(uint64_t));
  assert_memory_equal(data.persons.arm, ((uint32_t[]){1, 0, 0, 1, 0}), 5 * sizeof(uint32_t));
  assert_memory_equal(data.persons.value, ((uint32_t[]){0, 0, CV_GRID / 2, CV_GRID, CV_GRID}), 5 * sizeof(uint32_t));
  uint64_t most, beyond;
  assert_int_equal(cv_persons_give(&data.persons, data.items, 9, false, &most, &beyond), CV_OK);
  assert_true(most == 2 && beyond == 0);
  assert_int_equal(cv_persons_give(&data.persons, data.items, 1, false, &most, &beyond), CV_OK);
  assert_true(most == 1 && beyond == 2);
  cv_data_fini(&data);
  folder_remove(&folder);
}

/* Whoever reads the first half of the persons reads of the whole file; every reader has the same halves. */
static void test_persons_are_not_in_the_order_of_the_file(void **state) {
  enum { MANY_PERSONS = 2000 };
  static char text[64 * MANY_PERSONS];
  struct folder folder;
  struct cv_data data = {0};
  size_t n = (size_t)snprintf(text, sizeof(text), "item,score,who\n");
  for (int i = 0; i < MANY_PERSONS; i++) {
    n += (size_t)snprintf(text + n, sizeof(text) - n, "a,%d.%03d,p%d\n", i / 1000 / 2, i / 2, i);
  }
  folder_make(&folder);
  assert_int_equal(read_as(&folder, &persons, text, n, &data, NULL), CV_OK);
  uint32_t early = 0;
  for (uint32_t i = 0; i < MANY_PERSONS / 2; i++) {
    early += data.persons.value[i] < CV_GRID / 2;
  }
  assert_in_range(early, MANY_PERSONS * .22, MANY_PERSONS * .28);
  cv_data_fini(&data);
  folder_remove(&folder);
}

static uint64_t print_of(const struct cv_items_csv *ask, const char *text) {
  struct folder folder;
  struct cv_data data = {0};
  folder_make(&folder);
  assert_int_equal(read_as(&folder, ask, text, strlen(text), &data, NULL), CV_OK);
  uint64_t print = data.print;
  cv_data_fini(&data);
  folder_remove(&folder);
  return print;
}

static void test_the_fingerprint_is_that_of_the_data(void **state) {
  static const char *const others[] = {
      "item,score,who\na,0,ann\nb,1,ann\na,1,bob\n",       "item,score,who\na,0,ann\nb,1,ann\na,0.5,bo\n",
      "item,score,who\na,0,ann\nb,1,bo\na,1,bo\n",         "item,score,who\nb,1,ann\na,0,ann\na,1,bo\n",
      "item,score,who\na,1,ann\nb,1,ann\na,0,bo\n",        "item,score,who\na,0,ann\nc,1,ann\na,1,bo\n",
      "item,score,who\na,0,ann\nb,1,ann\na,1,bo\na,1,cy\n"};
  static const char text[] = "item,score,who\na,0,ann\nb,1,ann\na,1,bo\n";
  uint64_t print = print_of(&persons, text);
  assert_true(print != 0 && print == print_of(&persons, text));
  assert_true(print == print_of(&persons, others[0])); /* names of persons are nobody's number */
  for (size_t i = 1; i < CV_COUNT(others); i++) {
    assert_true(print_of(&persons, others[i]) != print);
  }
}

static void test_cells_that_are_not_names(void **state) {
  static const char *const bad[] = {"", " ", "\t\n", "a\tb"};
  static const char *const shown[] = {"", " ", "??", "a?b"};
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    char text[100], line[200];
    (void)snprintf(text, sizeof(text), "item,score,who\na,1,bob\na,0,\"%s\"\n", bad[i]);
    (void)snprintf(line, sizeof(line), ":3: who \"%s\" is not a valid name; expected 1 to 255 bytes of printable UTF-8",
                   shown[i]);
    bad_as(&persons, text, strlen(text), CV_ERR_INVALID, line);
  }
  bad_as(&persons, "item,score\na,1\n", 15, CV_ERR_INVALID, ":1: no column \"who\"; the columns are item, score");
}

static void test_form(void **state) {
  good("item,score\r\na,1\r\nb,0\r\n", "a:1000 b:0");
  good("item,score\r\na,1\r", "a:1000");
  good("\xef\xbb\xbfitem,score\na,1\n", "a:1000");
  good("\xef\xbb\xbf\"item\",score\na,1\n", "a:1000");
  good("item,score\n\n\na,1\n\n", "a:1000");
  good("item,score\n\"a, b\",\"1\"\n", "a, b:1000");
  good("item,score\n\"say \"\"hi\"\"\",1\n", "say \"hi\":1000");
  good("item,note,score\na,\"two\nlines\",1\nb,\"\",0\n", "a:1000 b:0");
  good("item,score\na, 0.5 \nb,+1\nc,5e-1\nd,.25\n", "a:500 b:1000 c:500 d:250");
  struct cv_items_csv tabs = plain;
  tabs.delimiter = '\t';
  good_as(&tabs, "item\tscore\na,b\t1\n", strlen("item\tscore\na,b\t1\n"), "a,b:1000");
}

/* All readers of the file must number the arms alike, whatever the order of its rows. */
static void test_order_of_items(void **state) {
  good("item,score\n10,1\n9,0\n2,1\n", "2:1000 9:0 10:1000");
  good("item,score\n1.0,1\n1,0\n-3,1\n", "-3:1000 1:0 1.0:1000");
  good("item,score\n10,1\n9,0\nx,1\n", "10:1000 9:0 x:1000");
  good("item,score\nb,1\nB,0\n\xc3\xa4,1\n", "B:0 b:1000 \xc3\xa4:1000");
  good("item,score\nnan,1\n7,0\n", "7:0 nan:1000");
}

static void test_scale(void **state) {
  struct cv_items_csv ask = plain;
  ask.scale = (struct cv_scale){.low = 1, .high = 5};
  good_as(&ask, "item,score\na,1\na,3\na,5\n", strlen("item,score\na,1\na,3\na,5\n"), "a:0,500,1000");
  const char *outside = "item,score\na,5\na,7\n";
  bad_as(&ask, outside, strlen(outside), CV_ERR_INVALID,
         ":3: score 7 is outside 1..5, the campaign's scale" OR_CLAMPED);
  ask.scale = (struct cv_scale){0};
  const char *spread = "item,score\na,-10\nb,10\na,0\n";
  good_as(&ask, spread, strlen(spread), "a:0,500 b:1000");
  const char *same = "item,score\na,4\nb,4\n";
  bad_as(&ask, same, strlen(same), CV_ERR_INVALID,
         ": items.scale is missing, and every score is 4; expected the range of the question, such as scale: [1, 5]");
  const char *far = "item,score\na,-1e308\nb,1e308\na,5e307\n";
  good_as(&ask, far, strlen(far), "a:0,750 b:1000");
}

static void test_bad_headers(void **state) {
  bad("", ":1: the file is empty; expected a header line with columns item and score");
  bad("\n\n", ":1: the file is empty; expected a header line with columns item and score");
  bad("item,score\n", ": no rows after the header; expected at least one");
  bad("id,points\na,1\n", ":1: no column \"item\"; the columns are id, points");
  bad("item,Score\na,1\n", ":1: no column \"score\"; the columns are item, Score");
  bad("item,score,item\na,1,b\n", ":1: two columns are called \"item\"; expected one");
  bad("\"it\x1b[31mem\",\"sc\nore\"\na,1\n", ":1: no column \"item\"; the columns are it?[31mem, sc?ore");
}

static void test_bad_rows(void **state) {
  bad("item,score\na\n", ":2: 1 fields; expected 2 as in the header");
  bad("item,score\na,1\nb,1,2\n", ":3: 3 fields; expected 2 as in the header");
#define NO_SCORE(text) \
  ":2: score \"" text "\" is no score; expected a number, or items.missing: skip to leave such rows out"
  bad("item,score\na,\n", NO_SCORE(""));
  bad("item,score\na, \n", NO_SCORE(" "));
  bad("item,score\na,NA\n", NO_SCORE("NA"));
  bad("item,score\na,nan\n", NO_SCORE("nan"));
  bad("item,score\na,NaN\n", NO_SCORE("NaN"));
  bad("item,score\na,null\n", NO_SCORE("null"));
  bad("item,score\na,N A\n", ":2: score \"N A\" is not a number");
  bad("item,score\na,high\n", ":2: score \"high\" is not a number");
  bad("item,score\na,inf\n", ":2: score \"inf\" is not a number");
  bad("item,score\na,1e999\n", ":2: score \"1e999\" is not a number");
  bad("item,score\na,0x1\n", ":2: score \"0x1\" is not a number");
  bad("item,score\na,1 2\n", ":2: score \"1 2\" is not a number");
  bad("item,score\na,1-1\n", ":2: score \"1-1\" is not a number");
  bad("item,score\na,1.5\n", ":2: score 1.5 is outside 0..1, the campaign's scale" OR_CLAMPED);
  bad("item,score\n,1\n", ":2: item \"\" is not a valid name; expected 1 to 255 bytes of printable UTF-8");
  bad("item,score\n\"a\nb\",1\n", ":2: item \"a?b\" is not a valid name; expected 1 to 255 bytes of printable UTF-8");
  bad("item,score\n\xff,1\n", ":2: item \"?\" is not a valid name; expected 1 to 255 bytes of printable UTF-8");
  /* lines are those of the file, not records */
  bad("item,score\n\"a, 1\",1\n\n\"b\",\"0\n\"\nc,x\n", ":4: score \"0?\" is not a number");
}

static void test_bad_form(void **state) {
  bad("item,score\na,\"1\nb,2\n", ":2: unterminated quoted field; expected a closing double quote");
  bad("item,score\na,\"1\"2\n", ":2: text after a closing double quote; expected the end of the field");
  bad("item,score\na\"b,1\n",
      ":2: a double quote inside an unquoted field; expected a quoted field with this quote doubled");
  bad("item,score\ra,1\r", ":1: a carriage return inside a line; expected LF or CR LF at its end");
  bad_as(&plain, "item,score\na\0b,1\n", 17, CV_ERR_INVALID, ":2: the line contains a zero byte; expected text");
}

static void test_sizes_are_bounded(void **state) {
  enum { LONG = CV_RECORDS_FIELD_BYTES };
  static char text[16 * CV_ARMS_MAX];
  int used = snprintf(text, sizeof(text), "item,score,note\na,1,");
  memset(text + used, 'x', LONG);
  good_as(&plain, text, (size_t)used + LONG, "a:1000");
  text[used + LONG] = 'x';
  bad_as(&plain, text, (size_t)used + LONG + 1, CV_ERR_LIMIT, ":2: field 3 is longer than 4096 bytes");

  memset(text, ',', CV_RECORDS_COLUMNS_MAX);
  bad_as(&plain, text, CV_RECORDS_COLUMNS_MAX, CV_ERR_LIMIT, ":1: too many fields; expected at most 1024");

  used = snprintf(text, sizeof(text), "item,score\n");
  for (int i = 0; i <= CV_ARMS_MAX; i++) {
    used += snprintf(text + used, sizeof(text) - (size_t)used, "%d,%d\n", i, i % 2);
  }
  bad_as(&plain, text, (size_t)used, CV_ERR_LIMIT,
         ":131074: too many different items at \"131072\"; expected at most 131072, or items.top or items.min_rows to "
         "leave some out");
}

static void test_what_is_not_a_file(void **state) {
  struct folder folder;
  struct cv_data data = {0};
  struct cv_why why = {0};
  struct cv_items_csv ask = plain;
  folder_make(&folder);
  char path[320];
  (void)snprintf(path, sizeof(path), "%s/none.csv", folder.path);
  ask.file = path;
  assert_int_equal(cv_data_read(&ask, false, &data, &why), CV_ERR_IO);
  assert_says(&why, &folder, "none.csv", ": cannot be opened: No such file or directory");
  ask.file = folder.path;
  assert_int_equal(cv_data_read(&ask, false, &data, &why), CV_ERR_IO);
  char line[200];
  (void)snprintf(line, sizeof(line), "%s: not a regular file; expected a file with rows", folder.path);
  assert_string_equal(why.text, line);
  folder_remove(&folder);
}

/* The Open Bandit sample: its provenance note says 10,000 rows. */
int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plain_rows),
      cmocka_unit_test(test_rows_of_persons),
      cmocka_unit_test(test_persons_are_not_in_the_order_of_the_file),
      cmocka_unit_test(test_the_fingerprint_is_that_of_the_data),
      cmocka_unit_test(test_cells_that_are_not_names),
      cmocka_unit_test(test_form),
      cmocka_unit_test(test_order_of_items),
      cmocka_unit_test(test_scale),
      cmocka_unit_test(test_bad_headers),
      cmocka_unit_test(test_bad_rows),
      cmocka_unit_test(test_bad_form),
      cmocka_unit_test(test_sizes_are_bounded),
      cmocka_unit_test(test_what_is_not_a_file),
  };
  return cmocka_run_group_tests_name("csv", tests, NULL, NULL);
}
