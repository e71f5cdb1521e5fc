/* SPDX-License-Identifier: Apache-2.0 */
/* A file of results keeps every bit of every number, can be read by other programs, and none of its contents is
 * trusted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "common/db/db_hook.h"
#include "common/db/proof.h"
#include "lab/result/archive.h"
#include "lab/result/merge.h"
#include "tests/support/near.h"
#include "tests/support/own_folder.h"
#include "tests/unit/lab/good.h"

enum { SETTINGS = 3, NUMBERS = 4 }; /* two series, two metrics, three points, each a setting */

static struct cv_lab_label series[] = {{"sound"}, {"as printed"}}, metrics[] = {{"accuracy"}, {"tokens"}};
static double xs[] = {.1, .2, .3};
static char name[] = "alpha", text[] = "campaign: alpha\nexperiment: {replicates: 3}\n", data_path[] = "scores.csv";
static struct cv_lab_data_file data = {.path = data_path, .bytes = 7, .sha256 = "00ff"};

static struct cv_lab_origin an_origin(void) {
  struct cv_lab_origin origin = {.name = name,
                                 .text = text,
                                 .seed = 7,
                                 .program = "0.1.0",
                                 .settings = SETTINGS,
                                 .series = 2,
                                 .points = 3,
                                 .metrics = 2,
                                 .series_name = series,
                                 .metric_name = metrics,
                                 .x = xs,
                                 .files = 1,
                                 .file = &data};
  cv_lab_sha256_hex(text, strlen(text), origin.text_sha256);
  return origin;
}

static struct cv_lab_archive *opened(const char *file, bool readonly) {
  struct cv_lab_archive *archive = NULL;
  assert_good(readonly ? cv_lab_archive_open_readonly(folder_file(&folder, file), &archive, &why)
                       : cv_lab_archive_open(folder_file(&folder, file), &archive, &why));
  return archive;
}

/* A number that no other trial has. */
static double number_of(uint64_t setting, uint64_t replicate, size_t at) {
  return (double)(setting * 100 + replicate) + .1 * (double)at;
}

/* Replicates from `first` on, every `step`-th, below `end`, of every setting. */
static void make(const char *file, const struct cv_lab_origin *origin, uint64_t first, uint64_t step, uint64_t end) {
  struct cv_lab_archive *archive = opened(file, false);
  assert_good(cv_lab_archive_begin(archive, &why));
  assert_good(cv_lab_archive_put_origin(archive, origin, &why));
  for (uint64_t setting = 0; setting < origin->settings; setting++) {
    for (uint64_t replicate = first; replicate < end; replicate += step) {
      double numbers[NUMBERS];
      for (size_t i = 0; i < NUMBERS; i++) {
        numbers[i] = number_of(setting, replicate, i);
      }
      assert_good(cv_lab_archive_put(archive, setting, replicate, numbers, NUMBERS, &why));
    }
  }
  assert_good(cv_lab_archive_commit(archive, &why));
  cv_lab_archive_close(archive);
}

/* Changes by a program that stores their checksums: only the contents are wrong. */
static void edit(const char *file, const char *sql) {
  static const char *const none[] = {""};
  static const struct cv_db_schema schema = {.application_id = 0x43564c42, .steps = none, .first = 3, .count = 1};
  static const struct cv_proof_part parts[] = {{.table = "experiment"}, {.table = "data_file"},
                                               {.table = "series"},     {.table = "point"},
                                               {.table = "metric"},     {.table = "trial", .code = "code"}};
  const struct cv_proof_config config = {.part = parts, .parts = CV_COUNT(parts)};
  struct cv_db *db;
  assert_good(cv_db_open(folder_file(&folder, file), NULL, &schema, &db, &why));
  assert_good(cv_proof_begin(db, &config, &why));
  assert_good(cv_db_begin(db, &why));
  assert_good(cv_db_exec(db, sql, &why));
  static const char codes[] = "UPDATE trial SET code = row_code(5, id, setting, replicate, numbers)";
  (void)sqlite3_exec(cv_db_handle(db), codes, NULL, NULL, NULL); /* not without the table */
  assert_good(cv_db_commit(db, &why));
  cv_db_close(db);
}

static void edit_plainly(const char *file, const char *sql) {
  sqlite3 *db;
  assert_int_equal(sqlite3_open(folder_file(&folder, file), &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static double ask(const char *file, const char *sql) {
  sqlite3 *db;
  sqlite3_stmt *stmt;
  assert_int_equal(sqlite3_open(folder_file(&folder, file), &db), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
  double value = sqlite3_column_double(stmt, 0);
  assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
  return value;
}

/* Everything is read, as export does. */
static enum cv_err ignore(void *count, uint64_t setting, uint64_t replicate, const double *numbers,
                          struct cv_why *told) {
  ++*(size_t *)count;
  return CV_OK;
}

static enum cv_err read_all(const char *file, size_t *count) {
  struct cv_lab_archive *archive;
  struct cv_lab_origin origin;
  CV_TRY(cv_lab_archive_open_readonly(folder_file(&folder, file), &archive, &why));
  enum cv_err err = cv_lab_archive_origin(archive, &origin, &why);
  if (err == CV_OK) {
    err = cv_lab_archive_each(archive, &origin, ignore, count, &why);
    cv_lab_origin_fini(&origin);
  }
  cv_lab_archive_close(archive);
  return err;
}

/* ---- numbers ---- */

static void test_every_bit_of_a_number_comes_back(void **state) {
  static const double hard[][NUMBERS] = {
      {0.0, -0.0, 1.0 / 3, -1e-300},
      {DBL_MAX, DBL_MIN, 4.9e-324, 9007199254740993.0},
      {1e16 + 2, 123456789012345680.0, -1e22, 0.1 + 0.2},
  };
  struct cv_lab_origin origin = an_origin();
  struct cv_lab_archive *archive = opened("a.db", false);
  assert_good(cv_lab_archive_begin(archive, &why));
  assert_good(cv_lab_archive_put_origin(archive, &origin, &why));
  for (uint64_t i = 0; i < CV_COUNT(hard); i++) {
    assert_good(cv_lab_archive_put(archive, i, CV_LAB_REPLICATES_MAX - 1, hard[i], NUMBERS, &why));
  }
  for (uint64_t i = 0; i < CV_COUNT(hard); i++) {
    double found[NUMBERS];
    bool is_there = false;
    assert_good(cv_lab_archive_get(archive, i, CV_LAB_REPLICATES_MAX - 1, found, NUMBERS, &is_there, &why));
    assert_true(is_there);
    assert_memory_equal(found, hard[i], sizeof(found));
    assert_good(cv_lab_archive_get(archive, i, 0, found, NUMBERS, &is_there, &why));
    assert_false(is_there);
  }
  cv_lab_archive_close(archive);
}

static void test_what_is_no_number_is_kept_and_what_is_infinite_refused(void **state) {
  struct cv_lab_origin origin = an_origin();
  struct cv_lab_archive *archive = opened("a.db", false);
  double numbers[NUMBERS] = {1, (double)NAN, 2, (double)NAN};
  bool found = false;
  assert_good(cv_lab_archive_begin(archive, &why));
  assert_good(cv_lab_archive_put_origin(archive, &origin, &why));
  assert_good(cv_lab_archive_put(archive, 0, 0, numbers, NUMBERS, &why));
  numbers[1] = numbers[3] = 5;
  assert_good(cv_lab_archive_get(archive, 0, 0, numbers, NUMBERS, &found, &why));
  assert_true(found && isnan(numbers[1]) && isnan(numbers[3]));
  numbers[0] = -(double)INFINITY;
  assert_int_equal(cv_lab_archive_put(archive, 0, 1, numbers, NUMBERS, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, "replicate 2: a number is infinite"));
  numbers[0] = 0;
  assert_int_equal(cv_lab_archive_put(archive, 0, 0, numbers, NUMBERS, &why), CV_ERR_EXISTS);
  cv_lab_archive_close(archive);
}

static void test_the_origin_comes_back(void **state) {
  struct cv_lab_origin origin = an_origin(), found;
  origin.token_level = true;
  xs[0] = (double)NAN;
  make("a.db", &origin, 0, 1, 0);
  xs[0] = .1;
  struct cv_lab_archive *archive = opened("a.db", true);
  assert_good(cv_lab_archive_origin(archive, &found, &why));
  cv_lab_archive_close(archive);
  assert_string_equal(found.name, name);
  assert_string_equal(found.text, text);
  assert_string_equal(found.program, "0.1.0");
  assert_true(found.seed == 7 && found.token_level && found.settings == 3 && found.series == 2 && found.points == 3 &&
              found.metrics == 2 && found.files == 1);
  assert_string_equal(found.series_name[1].text, "as printed");
  assert_string_equal(found.metric_name[0].text, "accuracy");
  assert_true(isnan(found.x[0]) && found.x[2] == .3);
  assert_true(found.file[0].bytes == 7 && strcmp(found.file[0].path, "scores.csv") == 0);
  assert_good(cv_lab_origin_match(&found, &found, "a.db", &why));
  cv_lab_origin_fini(&found);
}

/* The views save readers from knowing the order of numbers in a trial. */
static void test_the_views_put_numbers_to_their_series_points_and_metrics(void **state) {
  struct cv_lab_origin origin = an_origin();
  make("settings.db", &origin, 0, 1, 5);
  assert_near(ask("settings.db", "SELECT count(*) FROM result"), 3 * 5 * NUMBERS, 0);
  assert_near(ask("settings.db",
                  "SELECT value FROM result WHERE series = 'as printed' AND x = .2 AND"
                  " metric = 'tokens' AND replicate = 4"),
              number_of(1, 4, 3), 1e-12);
  assert_near(ask("settings.db", "SELECT mean FROM summary WHERE series = 'sound' AND x = .3 AND metric = 'tokens'"),
              number_of(2, 2, 1), 1e-9);
  origin.settings = 1; /* the points are moments of one run: 2 x 3 x 2 numbers */
  struct cv_lab_archive *archive = opened("moments.db", false);
  double numbers[12];
  for (size_t i = 0; i < 12; i++) {
    numbers[i] = (double)i;
  }
  numbers[5] = (double)NAN;
  assert_good(cv_lab_archive_begin(archive, &why));
  assert_good(cv_lab_archive_put_origin(archive, &origin, &why));
  assert_good(cv_lab_archive_put(archive, 0, 0, numbers, 12, &why));
  assert_good(cv_lab_archive_commit(archive, &why));
  cv_lab_archive_close(archive);
  assert_near(ask("moments.db",
                  "SELECT value FROM result WHERE series = 'as printed' AND x = .2 AND"
                  " metric = 'accuracy'"),
              8, 0);
  assert_near(ask("moments.db", "SELECT n FROM summary WHERE series = 'sound' AND x = .3 AND metric = 'tokens'"), 0, 0);
}

/* ---- what is not as it should be ---- */

static void test_a_changed_file_is_one_line(void **state) {
  static const char *const edits[] = {
      "UPDATE trial SET numbers = '[1,2,3]' WHERE id = 2",
      "UPDATE trial SET numbers = '[1,2,3,4,5]' WHERE id = 2",
      "UPDATE trial SET numbers = '[1,2,3,\"4\"]' WHERE id = 2",
      "UPDATE trial SET numbers = '[1,2,3,1e999]' WHERE id = 2",
      "UPDATE trial SET numbers = '[1,2,3,4' WHERE id = 2",
      "UPDATE trial SET numbers = '{}' WHERE id = 2",
      "UPDATE trial SET numbers = x'00' WHERE id = 2",
      "UPDATE trial SET numbers = '[[[[1],2],3],4]' WHERE id = 2",
      "UPDATE trial SET numbers = '[1,2,3,4' || printf('%*s', 1000, '') || ']' WHERE id = 2",
      "UPDATE trial SET setting = 3 WHERE id = 2",
      "UPDATE trial SET setting = -1 WHERE id = 2",
      "UPDATE trial SET setting = 'two' WHERE id = 2",
      "UPDATE trial SET replicate = 1000000000 WHERE id = 2",
      "UPDATE trial SET replicate = -9223372036854775808 WHERE id = 2",
      "UPDATE experiment SET settings = 2",
      "UPDATE experiment SET settings = 0",
      "UPDATE experiment SET series = 1",
      "UPDATE experiment SET series = 1048576, metrics = 1048576",
      "UPDATE experiment SET metrics = -2",
      "UPDATE experiment SET moments = 0",
      "UPDATE experiment SET data_files = 1025",
      "UPDATE experiment SET data_files = 0",
      "UPDATE experiment SET text = text || ' '",
      "UPDATE experiment SET text_sha256 = 'f'",
      "UPDATE experiment SET name = x'00'",
      "UPDATE experiment SET program = printf('%*s', 100, '')",
      "UPDATE series SET name = printf('%*s', 48, '')",
      "UPDATE series SET number = 5 WHERE number = 1",
      "DELETE FROM metric WHERE number = 1",
      "INSERT INTO point VALUES (3, 1)",
      "UPDATE data_file SET sha256 = printf('%*s', 65, '')",
      "DROP TABLE trial",
      "DROP VIEW result; DROP VIEW summary; DROP TABLE experiment",
  };
  struct cv_lab_origin origin = an_origin();
  for (size_t i = 0; i < CV_COUNT(edits); i++) {
    size_t count = 0;
    make("a.db", &origin, 0, 1, 2);
    assert_int_equal(read_all("a.db", &count), CV_OK);
    assert_int_equal(count, 6);
    edit("a.db", edits[i]);
    enum cv_err err = read_all("a.db", &count);
    if (err != CV_ERR_DAMAGED && !(strncmp(edits[i], "DROP", 4) == 0 && err == CV_ERR_DB)) {
      fail_msg("%s: %s %s", edits[i], cv_err_text(err), why.text);
    }
    assert_non_null(strstr(why.text, "a.db: "));
    assert_int_equal(remove(folder_file(&folder, "a.db")), 0);
  }
}

static void test_a_file_of_another_kind_is_one_line(void **state) {
  struct cv_lab_origin origin = an_origin();
  size_t count = 0;
  assert_int_equal(read_all("none.db", &count), CV_ERR_NOT_FOUND);
  make("a.db", &origin, 0, 1, 2);
  edit_plainly("a.db", "PRAGMA user_version = 2");
  assert_int_equal(read_all("a.db", &count), CV_ERR_VERSION);
  assert_non_null(strstr(why.text,
                         "a.db: schema version 2, of a Crowdveil before 0.3.0, whose files are not read; move "
                         "it away, and run the experiment again"));
  edit_plainly("a.db", "PRAGMA user_version = 4");
  assert_int_equal(read_all("a.db", &count), CV_ERR_VERSION);
  edit_plainly("a.db", "PRAGMA user_version = 3; PRAGMA application_id = 5");
  assert_int_equal(read_all("a.db", &count), CV_ERR_INVALID);
  FILE *file = fopen(folder_file(&folder, "text.db"), "we");
  assert_non_null(file);
  (void)fprintf(file, "%4000s\n", "no database");
  assert_int_equal(fclose(file), 0);
  assert_int_equal(read_all("text.db", &count), CV_ERR_DAMAGED);
}

static void test_the_first_difference_of_origins_is_named(void **state) {
  static char another_name[] = "beta", another_text[] = "campaign: alpha\nexperiment: {replicates: 4}\n";
  struct cv_lab_origin one = an_origin(), other[7];
  static const char *const told[] = {
      "experiment alpha; expected beta", "different from line 2 on",
      "seed 7; expected seed 8",         "sums drawn at once; expected tokens drawn one by one",
      "1 data files; expected 0",        "other data: scores.csv of 7 bytes",
      "measured other numbers"};
  struct cv_lab_data_file another_file = {.path = data_path, .bytes = 7, .sha256 = "00fe"};
  for (size_t i = 0; i < CV_COUNT(other); i++) {
    other[i] = one;
  }
  other[0].name = another_name;
  other[1].text = another_text;
  other[2].seed = 8;
  other[3].token_level = true;
  other[4].files = 0;
  other[5].file = &another_file;
  other[6].series = 1;
  for (size_t i = 0; i < CV_COUNT(other); i++) {
    assert_int_equal(cv_lab_origin_match(&one, &other[i], "a.db", &why), CV_ERR_INVALID);
    assert_non_null(strstr(why.text, "a.db: "));
    if (strstr(why.text, told[i]) == NULL) {
      fail_msg("%s: %s", told[i], why.text);
    }
  }
  other[0] = one;
  (void)snprintf(other[0].program, sizeof(other[0].program), "9.9");
  assert_good(cv_lab_origin_match(&one, &other[0], "a.db", &why));
}

static void test_a_data_file_is_known_by_its_content(void **state) {
  struct cv_lab_data_file file;
  FILE *out = fopen(folder_file(&folder, "abc"), "we");
  assert_non_null(out);
  (void)fputs("abc", out);
  assert_int_equal(fclose(out), 0);
  assert_good(cv_lab_data_file_read(folder_file(&folder, "abc"), &file, &why));
  assert_string_equal(file.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert_int_equal(file.bytes, 3);
  free(file.path);
  assert_int_equal(cv_lab_data_file_read(folder_file(&folder, "none"), &file, &why), CV_ERR_NOT_FOUND);
  assert_int_equal(cv_lab_data_file_read(folder.path, &file, &why), CV_ERR_INVALID);
}

/* ---- merging ---- */

static enum cv_err merge(const char *out, size_t count, const char *const *names, struct cv_lab_merged *merged) {
  char path[3][320];
  const char *file[3] = {path[0], path[1], path[2]};
  for (size_t i = 0; i < count; i++) {
    (void)snprintf(path[i], sizeof(path[i]), "%s", folder_file(&folder, names[i]));
  }
  return cv_lab_merge(folder_file(&folder, out), file, count, merged, &why);
}

static enum cv_err look(void *count, uint64_t setting, uint64_t replicate, const double *numbers, struct cv_why *told) {
  assert_near(numbers[2], number_of(setting, replicate, 2), 0);
  ++*(size_t *)count;
  return CV_OK;
}

static void test_shards_merge_into_the_whole(void **state) {
  static const char *const names[] = {"1.db", "2.db", "3.db"};
  struct cv_lab_origin origin = an_origin();
  struct cv_lab_merged merged;
  size_t count = 0;
  make("1.db", &origin, 0, 2, 10);
  make("2.db", &origin, 1, 2, 8);
  make("3.db", &origin, 3, 1, 7); /* overlaps both */
  assert_good(merge("all.db", 3, names, &merged));
  assert_true(merged.settings == 3 && merged.replicates == 9 && merged.trials == 27 && merged.missing == 0);
  struct cv_lab_archive *archive = opened("all.db", true);
  assert_good(cv_lab_archive_each(archive, &origin, look, &count, &why));
  assert_int_equal(count, 27);
  cv_lab_archive_close(archive);
  assert_good(merge("some.db", 1, names, &merged));
  assert_true(merged.replicates == 9 && merged.trials == 15 && merged.missing == 12);
}

static void assert_not_merged(const char *told) {
  static const char *const names[] = {"1.db", "2.db"};
  struct cv_lab_merged merged;
  assert_int_equal(merge("all.db", 2, names, &merged), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, "2.db: "));
  assert_non_null(strstr(why.text, told));
  assert_int_equal(access(folder_file(&folder, "all.db"), F_OK), -1);
  assert_int_equal(access(folder_file(&folder, "all.db.partial"), F_OK), -1);
}

static void test_files_that_do_not_belong_together_are_not_merged(void **state) {
  struct cv_lab_origin origin = an_origin();
  make("1.db", &origin, 0, 1, 2);
  origin.seed = 8;
  make("2.db", &origin, 2, 1, 4);
  assert_not_merged("seed 8; expected seed 7");
}

static void test_files_that_contradict_each_other_are_not_merged(void **state) {
  struct cv_lab_origin origin = an_origin();
  make("1.db", &origin, 0, 1, 2);
  make("2.db", &origin, 0, 1, 2);
  edit("2.db",
       "UPDATE trial SET numbers = '[101.0,101.1,101.2,101.30000000000001]' WHERE setting = 1 AND replicate = 1");
  assert_not_merged("other numbers for setting 2, replicate 2 ");
}

static void test_a_merge_overwrites_nothing_but_its_own_leftover(void **state) {
  static const char *const names[] = {"1.db", "none.db"};
  struct cv_lab_origin origin = an_origin();
  struct cv_lab_merged merged;
  make("1.db", &origin, 0, 1, 2);
  assert_int_equal(merge("1.db", 1, names, &merged), CV_ERR_EXISTS);
  assert_int_equal(merge("all.db", 2, names, &merged), CV_ERR_NOT_FOUND);
  make("all.db.partial", &origin, 5, 1, 9);
  assert_good(merge("all.db", 1, names, &merged));
  assert_int_equal(merged.trials, 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_every_bit_of_a_number_comes_back, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_what_is_no_number_is_kept_and_what_is_infinite_refused, make_folder,
                                      remove_folder),
      cmocka_unit_test_setup_teardown(test_the_origin_comes_back, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_the_views_put_numbers_to_their_series_points_and_metrics, make_folder,
                                      remove_folder),
      cmocka_unit_test_setup_teardown(test_a_changed_file_is_one_line, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_a_file_of_another_kind_is_one_line, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_the_first_difference_of_origins_is_named, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_a_data_file_is_known_by_its_content, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_shards_merge_into_the_whole, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_files_that_do_not_belong_together_are_not_merged, make_folder,
                                      remove_folder),
      cmocka_unit_test_setup_teardown(test_files_that_contradict_each_other_are_not_merged, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_a_merge_overwrites_nothing_but_its_own_leftover, make_folder, remove_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
