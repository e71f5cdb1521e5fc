/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows and items of a data file count, on which scale, and what is said about it. */
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

static const struct cv_items_csv stars = {
    .item_column = "film", .score_column = "stars", .delimiter = ',', .scale = {.low = 1, .high = 5}};

static void good(const struct cv_items_csv *how, const char *text, const char *expected, const char *notes) {
  struct folder folder;
  folder_make(&folder);
  (void)write_text(&folder, "r.csv", text);
  assert_data(&folder, how, "r.csv", expected, notes);
  folder_remove(&folder);
}

static void bad(const struct cv_items_csv *how, const char *text, enum cv_err err, const char *line) {
  struct folder folder;
  folder_make(&folder);
  (void)write_text(&folder, "r.csv", text);
  assert_bad_data(&folder, how, "r.csv", err, line);
  folder_remove(&folder);
}

static void test_rows_without_a_score_are_skipped_if_the_campaign_says_so(void **state) {
  struct cv_items_csv skip = stars;
  skip.skips_missing = true;
  const char *text = "film,stars\na,5\nb,\na, NA \na,nan\nb,NULL\nb,1\nc,\n";
  good(&skip, text, "a:1000 b:0",
       "r.csv: 5 of 7 rows without a score are skipped, the first at line 3\n"
       "r.csv: 1 of 3 items are left out, and with them 0 of 2 rows (1 without a score)\n");
  bad(&stars, text, CV_ERR_INVALID,
      ":3: stars \"\" is no score; expected a number, or items.missing: skip to leave such rows out");
  bad(&skip, "film,stars\na,5\na,n/a\n", CV_ERR_INVALID, ":3: stars \"n/a\" is not a number");
  bad(&skip, "film,stars\na,\n", CV_ERR_INVALID, ": no rows with a score; expected at least one");
}

static void test_the_items_with_most_rows_stay(void **state) {
  struct cv_items_csv top = stars;
  top.top = 2;
  const char *text = "film,stars\nd,1\nc,5\nb,3\na,5\nd,5\nc,1\nb,1\n";
  /* b, c and d have two rows each: the names decide, not the order of the file */
  good(&top, text, "b:500,0 c:1000,0", "r.csv: 2 of 4 items are left out, and with them 3 of 7 rows (top: 2)\n");
  top.top = 4;
  good(&top, text, "a:1000 b:500,0 c:1000,0 d:0,1000", "");
  /* numbers are compared as numbers: 2 before 10 */
  top.top = 1;
  good(&top, "film,stars\n10,1\n2,5\n", "2:1000",
       "r.csv: 1 of 2 items are left out, and with them 1 of 2 rows (top: 1)\n");
}

static void test_items_with_few_rows_are_left_out(void **state) {
  struct cv_items_csv few = stars;
  few.least_rows = 2;
  good(&few, "film,stars\na,1\nb,5\nb,1\nc,3\nc,3\nc,1\n", "b:1000,0 c:500,500,0",
       "r.csv: 1 of 3 items are left out, and with them 1 of 6 rows (min_rows: 2)\n");
  few.top = 1;
  good(&few, "film,stars\na,1\nb,5\nb,1\nc,3\nc,3\nc,1\n", "c:500,500,0",
       "r.csv: 2 of 3 items are left out, and with them 3 of 6 rows (min_rows: 2, top: 1)\n");
  few.least_rows = 4;
  bad(&few, "film,stars\na,1\nb,5\nb,1\n", CV_ERR_INVALID,
      ": the item with most rows, \"b\", has 2; expected at least items.min_rows, 4");
}

/* More items than a campaign can have are no error if few of them stay. */
static void test_many_items_of_which_few_stay(void **state) {
  struct folder folder;
  struct cv_items_csv top = stars;
  static char text[24 * CV_ARMS_MAX];
  size_t used = (size_t)snprintf(text, sizeof(text), "film,stars\nbest,5\nbest,1\n");
  for (int i = 0; i <= CV_ARMS_MAX; i++) {
    used += (size_t)snprintf(text + used, sizeof(text) - used, "%d,3\n", i);
  }
  folder_make(&folder);
  (void)write_text(&folder, "r.csv", text);
  top.top = 1;
  assert_data(&folder, &top, "r.csv", "best:1000,0", NULL);
  top.top = 0;
  top.least_rows = 1;
  char line[200];
  (void)snprintf(line, sizeof(line), ": %d items have at least 1 rows; expected at most %d: set items.top",
                 CV_ARMS_MAX + 2, CV_ARMS_MAX);
  assert_bad_data(&folder, &top, "r.csv", CV_ERR_LIMIT, line);
  folder_remove(&folder);
}

static void test_persons_without_a_row_that_counts_are_no_workers(void **state) {
  struct folder folder;
  struct cv_items_csv ask = stars;
  struct cv_data data = {0};
  struct cv_why why = {.text = ""};
  char path[320];
  folder_make(&folder);
  (void)snprintf(path, sizeof(path), "%s",
                 write_text(&folder, "r.csv", "film,stars,who\nrare,5,Zoe\na,1,Ann\nrare2,1,Ann\na,5,Bob\n"));
  (void)snprintf(ask.worker_column, sizeof(ask.worker_column), "who");
  ask.file = path;
  ask.top = 1;
  assert_int_equal(cv_data_read(&ask, false, &data, &why), CV_OK);
  assert_int_equal(data.persons.persons, 2);
  assert_memory_equal(data.persons.start, ((uint64_t[]){0, 1, 2}), 3 * sizeof(uint64_t));
  assert_memory_equal(data.persons.value, ((uint32_t[]){0, CV_GRID}), 2 * sizeof(uint32_t));
  assert_string_equal(data.notes.note[1].text,
                      "r.csv: 1 of 3 persons are left out, since none of their rows is of an item that stays");
  cv_data_fini(&data);
  folder_remove(&folder);
}

#define CAFE_NFC "Caf\u00e9"
#define CAFE_NFD "Cafe\u0301"

/* They look alike, so they are one item; the owner of the file is told where. */
static void test_names_of_one_normal_form_are_one_item(void **state) {
  good(&stars, "film,stars\n" CAFE_NFC ",1\nBar,5\n" CAFE_NFD ",5\n" CAFE_NFD ",3\n",
       "Bar:1000 " CAFE_NFC ":0,1000,500",
       "r.csv: \"" CAFE_NFC "\" of line 2 and of line 4 are one item, typed with other characters or blanks\n");
  good(&stars, "film,stars\n" CAFE_NFD ",1\nBar,5\n" CAFE_NFD ",5\n" CAFE_NFC ",3\n",
       "Bar:1000 " CAFE_NFC ":0,1000,500",
       "r.csv: \"" CAFE_NFC "\" of line 2 and of line 5 are one item, typed with other characters or blanks\n");
  good(&stars, "film,stars\nBar,5\n\"Bar \",1\n\u00a0Bar,3\n", "Bar:1000,0,500",
       "r.csv: \"Bar\" of line 2 and of line 3 are one item, typed with other characters or blanks\n");
  good(&stars, "film,stars\n Bar,5\nBar\u3000,1\n", "Bar:1000,0",
       "r.csv: \"Bar\" of line 2 and of line 3 are one item, typed with other characters or blanks\n");
  /* typed alike everywhere: nothing to say */
  good(&stars, "film,stars\n " CAFE_NFD ",5\nBar,1\n " CAFE_NFD ",3\n", "Bar:0 " CAFE_NFC ":1000,500", "");
  good(&stars, "film,stars\n2 ,5\n10,1\n", "2:1000 10:0", "");
}

static void test_many_names_of_one_normal_form(void **state) {
  char text[2000] = "film,stars\n", expected[400] = "", notes[2000] = "";
  for (int i = 0; i < 10; i++) {
    (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d,1\n%d ,5\n", i, i);
    (void)snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "%s%d:0,1000", i == 0 ? "" : " ",
                   i);
    if (i < 8) {
      (void)snprintf(notes + strlen(notes), sizeof(notes) - strlen(notes),
                     "r.csv: \"%d\" of line %d and of line %d are one item, typed with other characters or blanks\n", i,
                     2 * i + 2, 2 * i + 3);
    }
  }
  (void)snprintf(notes + strlen(notes), sizeof(notes) - strlen(notes),
                 "r.csv: 2 more items are typed in several ways\n");
  good(&stars, text, expected, notes);
}

static void test_what_no_name_may_have_is_named(void **state) {
  bad(&stars, "film,stars\nBar,1\ngood\u202eeno,5\n", CV_ERR_INVALID,
      ":3: film \"good???eno\" has U+202E, which turns the direction of what follows; expected a name without it");
  bad(&stars, "film,stars\nB\u200bar,1\n", CV_ERR_INVALID,
      ":2: film \"B???ar\" has U+200B, which cannot be seen; expected a name without it");
}

static void test_persons_of_one_normal_form_are_one(void **state) {
  struct folder folder;
  struct cv_items_csv ask = stars;
  struct cv_data data = {0};
  struct cv_why why = {.text = ""};
  char path[320];
  folder_make(&folder);
  (void)snprintf(ask.worker_column, sizeof(ask.worker_column), "who");
  (void)snprintf(path, sizeof(path), "%s",
                 write_text(&folder, "r.csv", "film,stars,who\na,5,Ren\u00e9\na,1,Ann\nb,1,Rene\u0301\nb,1, Ann\n"));
  ask.file = path;
  assert_int_equal(cv_data_read(&ask, false, &data, &why), CV_OK);
  assert_int_equal(data.persons.persons, 2);
  assert_memory_equal(data.persons.start, ((uint64_t[]){0, 2, 4}), 3 * sizeof(uint64_t));
  assert_int_equal(data.notes.count, 2);
  assert_string_equal(data.notes.note[0].text,
                      "r.csv: \"Ren\u00e9\" of line 2 and of line 4 are one person, typed with "
                      "other characters or blanks");
  assert_string_equal(data.notes.note[1].text,
                      "r.csv: \"Ann\" of line 3 and of line 5 are one person, typed with other characters or blanks");
  cv_data_fini(&data);
  folder_remove(&folder);
}

static void test_a_scale_that_is_not_named_is_said(void **state) {
  struct cv_items_csv free_scale = stars;
  free_scale.scale = (struct cv_scale){0};
  good(&free_scale, "film,stars\na,0.5\nb,5\n", "a:0 b:1000",
       "r.csv: the scale of stars is the min-max of the file, 0.5 to 5; name it with scale: [0.5, 5]\n");
  good(&free_scale, "film,stars\na,0.30000000000000004\nb,0.1\n", "a:1000 b:0",
       "r.csv: the scale of stars is the min-max of the file, 0.1 to 0.30000000000000004; name it with "
       "scale: [0.1, 0.30000000000000004]\n");
  good(&stars, "film,stars\na,1\nb,5\n", "a:0 b:1000", "");
}

/* The file's own range is offered to its owner, and never taken: one row would move every token. */
static void test_what_has_to_stay_private_needs_a_scale(void **state) {
  static const struct {
    const char *rows, *why;
  } seen[] = {
      {"a,2\nb,4.5\n",
       "items.scale is missing: the scores go from 2 to 4.5; write scale: [2, 4.5] if that is the range "
       "of the question, whatever was answered"},
      {"a,2\nb,2\n",
       "items.scale is missing, and every stars is 2; expected the range of the question, such as scale: "
       "[1, 5]"},
      {"a,1\na,2\na,3\na,4\na,5\na,1\na,2\na,3\na,4\na,5\na,1\na,2\na,3\na,4\na,5\na,1\na,2\na,3\na,5\na,700\n",
       "items.scale is missing: 90 % of the scores go from 1 to 5, but that of line 21 is 700; write scale: [1, 5] if "
       "that is the range of the question, and outside: clamp unless you correct such rows"},
  };
  struct cv_items_csv free_scale = stars;
  struct folder folder;
  folder_make(&folder);
  free_scale.scale = (struct cv_scale){0};
  for (size_t i = 0; i < CV_COUNT(seen); i++) {
    char text[400], path[320], expected[400];
    struct cv_data data;
    struct cv_why why;
    (void)snprintf(text, sizeof(text), "film,stars\n%s", seen[i].rows);
    (void)snprintf(path, sizeof(path), "%s", write_text(&folder, "r.csv", text));
    (void)snprintf(expected, sizeof(expected), "%s: %s", path, seen[i].why);
    free_scale.file = path;
    assert_int_equal(cv_data_read(&free_scale, true, &data, &why), CV_ERR_INVALID);
    assert_string_equal(why.text, expected);
  }
  folder_remove(&folder);
}

static void test_scores_outside_are_clamped_if_asked(void **state) {
  struct cv_items_csv clamping = stars;
  clamping.clamps = true;
  good(&clamping, "film,stars\na,2\nb,-7\na,1e308\nb,5\n", "a:250,1000 b:0,1000",
       "r.csv: 2 of 4 scores are outside the scale and count as its nearer end, the first at line 3\n");
  good(&clamping, "film,stars\na,2\nb,5\n", "a:250 b:1000", "");
}

/* One wrong row would put all films into one class. */
static void test_a_row_that_stretches_the_scale_is_named(void **state) {
  struct cv_items_csv free_scale = stars;
  char text[1000] = "film,stars\na,5\na,1e308\n", plain[1000] = "film,stars\n";
  free_scale.scale = (struct cv_scale){0};
  for (int i = 0; i < 40; i++) {
    (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "a,%d\n", i % 5 + 1);
    (void)snprintf(plain + strlen(plain), sizeof(plain) - strlen(plain), "a,%d\n", i % 5 + 1);
  }
  struct folder folder;
  struct cv_data data = {0};
  struct cv_why why;
  char path[320];
  folder_make(&folder);
  (void)snprintf(path, sizeof(path), "%s", write_text(&folder, "r.csv", text));
  free_scale.file = path;
  assert_int_equal(cv_data_read(&free_scale, false, &data, &why), CV_OK);
  assert_int_equal(data.notes.count, 2);
  assert_string_equal(data.notes.note[1].text,
                      "r.csv: line 3 stretches the scale: its stars is 1e+308, but 95.24 % of the rows lie in 1 to 5, "
                      "4e-306 % of the scale; expected that row corrected or left out");
  cv_data_fini(&data);
  (void)write_text(&folder, "r.csv", plain);
  assert_int_equal(cv_data_read(&free_scale, false, &data, &why), CV_OK);
  assert_int_equal(data.notes.count, 1);
  cv_data_fini(&data);
  folder_remove(&folder);
}

static void test_columns_that_are_not_used_are_named(void **state) {
  good(&stars, "film,date,stars,weight\na,2020,1,2\nb,2021,5,1\n", "a:0 b:1000",
       "r.csv: columns not used: date, weight\n");
  char text[2000] = "film", *at = text + 4;
  for (int i = 0; i < 100; i++) {
    at += snprintf(at, 16, ",column%d", i);
  }
  at += snprintf(at, 16, ",stars\na");
  for (int i = 0; i < 100; i++) {
    at += snprintf(at, 16, ",");
  }
  (void)snprintf(at, 16, ",1\n");
  good(&stars, text, "a:0",
       "r.csv: columns not used: column0, column1, column2, column3, column4, column5, column6, column7, column8, "
       "column9, column10, column11, column12, column13, column14, column15 ...\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_without_a_score_are_skipped_if_the_campaign_says_so),
      cmocka_unit_test(test_the_items_with_most_rows_stay),
      cmocka_unit_test(test_items_with_few_rows_are_left_out),
      cmocka_unit_test(test_many_items_of_which_few_stay),
      cmocka_unit_test(test_persons_without_a_row_that_counts_are_no_workers),
      cmocka_unit_test(test_names_of_one_normal_form_are_one_item),
      cmocka_unit_test(test_many_names_of_one_normal_form),
      cmocka_unit_test(test_what_no_name_may_have_is_named),
      cmocka_unit_test(test_persons_of_one_normal_form_are_one),
      cmocka_unit_test(test_a_scale_that_is_not_named_is_said),
      cmocka_unit_test(test_what_has_to_stay_private_needs_a_scale),
      cmocka_unit_test(test_scores_outside_are_clamped_if_asked),
      cmocka_unit_test(test_a_row_that_stretches_the_scale_is_named),
      cmocka_unit_test(test_columns_that_are_not_used_are_named),
  };
  return cmocka_run_group_tests_name("data", tests, NULL, NULL);
}
