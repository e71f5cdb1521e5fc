/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a database that changes between the copy's steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/db/copy.h"
#include "tests/support/own_folder.h"

enum { ROWS = 400, STEP_PAGES = 3 };

static const char *const steps[] = {"CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"};
static const struct cv_db_schema schema = {.application_id = 0x43560001, .steps = steps, .first = 1, .count = 1};

static void run(struct cv_db *db, const char *sql) {
  struct cv_why why;
  assert_int_equal(cv_db_begin(db, &why), CV_OK);
  assert_int_equal(cv_db_exec(db, sql, &why), CV_OK);
  assert_int_equal(cv_db_commit(db, &why), CV_OK);
}

/* A database of about 400 pages, in a new file. */
static struct cv_db *make(const char *name) {
  struct cv_db *db = NULL;
  struct cv_why why;
  assert_int_equal(cv_db_open(folder_file(&folder, name), NULL, &schema, &db, &why), CV_OK);
  run(db,
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)"
      " INSERT INTO note SELECT i, 'first ' || hex(randomblob(1500)) FROM n");
  return db;
}

/* Writes what `fd` holds into a file of that name. */
static void keep(int fd, uint64_t bytes, const char *name) {
  char *all = malloc(bytes);
  FILE *file = fopen(folder_file(&folder, name), "we");
  assert_true(all != NULL && file != NULL && pread(fd, all, bytes, 0) == (ssize_t)bytes);
  assert_true(fwrite(all, 1, bytes, file) == bytes && fclose(file) == 0 && close(fd) == 0);
  free(all);
}

static int64_t ask(struct cv_db *db, const char *sql) {
  sqlite3_stmt *stmt = NULL;
  struct cv_why why;
  int row = 0;
  assert_int_equal(cv_db_prepare(db, sql, &stmt, &why), CV_OK);
  assert_int_equal(cv_db_step(db, stmt, &row, &why), CV_OK);
  assert_int_equal(row, 1);
  int64_t number = sqlite3_column_int64(stmt, 0);
  (void)sqlite3_reset(stmt);
  return number;
}

/* Commits between the steps change rows that are copied already, rows that are not, and the size. */
static void test_the_copy_is_the_last_commit(void **state) {
  struct cv_db *db = make("live.db"), *copied = NULL;
  struct cv_db_copy *copy = NULL;
  struct cv_why why;
  uint64_t bytes = 0;
  bool done = false;
  int commits = 0;
  assert_int_equal(cv_db_copy_begin(db, folder_file(&folder, "copy.tmp"), &copy, &why), CV_OK);
  assert_int_not_equal(access(folder_file(&folder, "copy.tmp"), F_OK), 0);
  while (!done) {
    char sql[200];
    assert_int_equal(cv_db_copy_step(copy, STEP_PAGES, &done, &why), CV_OK);
    if (!done) {
      commits++;
      (void)snprintf(sql, sizeof(sql),
                     "UPDATE note SET text = 'later ' || hex(randomblob(1500)) WHERE id IN (%d, %d);"
                     "INSERT INTO note VALUES (%d, 'new ' || hex(randomblob(1500)))",
                     1 + commits % ROWS, ROWS - commits % ROWS, ROWS + commits);
      run(db, sql);
    }
  }
  assert_true(commits > ROWS / STEP_PAGES);
  int fd = cv_db_copy_take(copy, &bytes);
  cv_db_copy_end(copy);
  keep(fd, bytes, "copy.db");
  assert_int_equal(cv_db_open_readonly(folder_file(&folder, "copy.db"), &schema, &copied, &why), CV_OK);
  static const char *const questions[] = {"SELECT count(*) FROM note", "SELECT sum(unicode(text)) FROM note",
                                          "SELECT max(id) FROM note"};
  for (size_t i = 0; i < CV_COUNT(questions); i++) {
    assert_int_equal(ask(copied, questions[i]), ask(db, questions[i]));
  }
  assert_int_equal(ask(copied, "SELECT count(*) FROM note"), ROWS + commits);
  cv_db_close(copied);
  cv_db_close(db);
}

/* What a purge has deleted before is in no page of the copy; nor what is deleted while it is made. */
static void test_the_copy_has_nothing_that_was_deleted(void **state) {
  struct cv_db *db = make("purged.db");
  struct cv_db_copy *copy = NULL;
  struct cv_why why;
  uint64_t bytes = 0;
  bool done = false;
  run(db, "INSERT INTO note VALUES (1001, 'SECRET-ONE'), (1002, 'SECRET-TWO'), (1003, 'stays')");
  run(db, "DELETE FROM note WHERE id = 1001");
  assert_int_equal(cv_db_copy_begin(db, folder_file(&folder, "copy.tmp"), &copy, &why), CV_OK);
  assert_int_equal(cv_db_copy_step(copy, ROWS / 2, &done, &why), CV_OK);
  assert_false(done);
  run(db, "DELETE FROM note WHERE id = 1002");
  while (!done) {
    assert_int_equal(cv_db_copy_step(copy, STEP_PAGES, &done, &why), CV_OK);
  }
  int fd = cv_db_copy_take(copy, &bytes);
  cv_db_copy_end(copy);
  char *all = malloc(bytes);
  assert_true(all != NULL && pread(fd, all, bytes, 0) == (ssize_t)bytes);
  assert_null(memmem(all, bytes, "SECRET", 6));
  assert_non_null(memmem(all, bytes, "stays", 5));
  free(all);
  (void)close(fd);
  cv_db_close(db);
}

static void test_a_copy_may_end_early_and_the_database_goes_on(void **state) {
  struct cv_db *db = make("early.db");
  struct cv_db_copy *copy = NULL;
  struct cv_why why;
  bool done = true;
  assert_int_equal(cv_db_copy_begin(db, folder_file(&folder, "copy.tmp"), &copy, &why), CV_OK);
  assert_int_equal(cv_db_copy_step(copy, STEP_PAGES, &done, &why), CV_OK);
  assert_false(done);
  cv_db_copy_end(copy);
  run(db, "INSERT INTO note VALUES (5000, 'goes on')");
  assert_int_equal(ask(db, "SELECT count(*) FROM note"), ROWS + 1);
  cv_db_close(db);
}

static void test_a_folder_that_is_missing_is_one_line(void **state) {
  struct cv_db *db = make("nowhere.db");
  struct cv_db_copy *copy = NULL;
  struct cv_why why;
  assert_int_equal(cv_db_copy_begin(db, folder_file(&folder, "none/copy.tmp"), &copy, &why), CV_ERR_IO);
  assert_non_null(strstr(why.text, "none/copy.tmp: cannot create"));
  assert_null(copy);
  cv_db_close(db);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_copy_is_the_last_commit),
      cmocka_unit_test(test_the_copy_has_nothing_that_was_deleted),
      cmocka_unit_test(test_a_copy_may_end_early_and_the_database_goes_on),
      cmocka_unit_test(test_a_folder_that_is_missing_is_one_line),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
