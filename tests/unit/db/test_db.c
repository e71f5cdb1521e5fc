/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/db/db.h"
#include "tests/support/folder.h"

static const char *const steps[] = {
    "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
    ("ALTER TABLE note ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey';"
     "CREATE TABLE tag (note INTEGER NOT NULL REFERENCES note (id))"),
    "CREATE TABLE third (id INTEGER PRIMARY KEY); INSERT INTO nowhere VALUES (1)",
};

enum { OURS = 0x43560001 };
static const struct cv_db_schema first = {.application_id = OURS, .steps = steps, .first = 1, .count = 1};
static const struct cv_db_schema second = {.application_id = OURS, .steps = steps, .first = 1, .count = 2};
static const struct cv_db_schema broken = {.application_id = OURS, .steps = steps, .first = 1, .count = 3};
/* An id with the top bit set must survive SQLite's signed pragma. */
static const struct cv_db_schema foreign = {.application_id = 0xfedcba98, .steps = steps, .first = 1, .count = 1};

static struct folder folder;
static const char *path;
static char path_text[320];

static int set_up(void **state) {
  (void)state;
  folder_make(&folder);
  (void)snprintf(path_text, sizeof(path_text), "%s", folder_file(&folder, "state.db"));
  path = path_text;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  folder_remove(&folder);
  return 0;
}

static struct cv_db *opened(const struct cv_db_schema *schema) {
  struct cv_db *db = NULL;
  struct cv_why why = {{0}};
  if (cv_db_open(path, NULL, schema, &db, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return db;
}

static void assert_one_line(const struct cv_why *why, const char *about) {
  assert_non_null(strstr(why->text, path));
  assert_non_null(strstr(why->text, about));
  assert_null(strchr(why->text, '\n'));
}

static void assert_refused(const struct cv_db_schema *schema, enum cv_err expected, const char *about) {
  struct cv_db *db = NULL;
  struct cv_why why = {{0}};
  assert_int_equal(cv_db_open(path, NULL, schema, &db, &why), expected);
  assert_null(db);
  assert_one_line(&why, about);
}

static void assert_unreadable(const struct cv_db_schema *schema, enum cv_err expected, const char *about) {
  struct cv_db *db = NULL;
  struct cv_why why = {{0}};
  assert_int_equal(cv_db_open_readonly(path, schema, &db, &why), expected);
  assert_null(db);
  assert_one_line(&why, about);
}

static void run(struct cv_db *db, const char *sql) {
  struct cv_why why = {{0}};
  if (cv_db_exec(db, sql, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static int64_t number(struct cv_db *db, const char *sql) {
  sqlite3_stmt *stmt = NULL;
  int row = 0;
  assert_int_equal(cv_db_prepare(db, sql, &stmt, NULL), CV_OK);
  assert_int_equal(cv_db_step(db, stmt, &row, NULL), CV_OK);
  assert_int_equal(row, 1);
  int64_t value = sqlite3_column_int64(stmt, 0);
  (void)sqlite3_reset(stmt);
  return value;
}

static void write_bytes(off_t at, const void *bytes, size_t n) {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, bytes, n, at), n);
  assert_int_equal(close(fd), 0);
}

/* Runs `act` in a process of its own that is then killed, so that nothing is closed. Returns its result. */
static int in_other_process(int (*act)(void)) {
  int ends[2], result = -1, status = 0;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    result = act();
    if (write(ends[1], &result, sizeof(result)) != (ssize_t)sizeof(result)) {
      _exit(1);
    }
    (void)kill(getpid(), SIGKILL);
  }
  (void)close(ends[1]);
  assert_int_equal(read(ends[0], &result, sizeof(result)), sizeof(result));
  (void)close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  return result;
}

static void test_new_database_is_private_and_durable(void **state) {
  (void)state;
  struct stat info;
  mode_t old = umask(0);
  struct cv_db *db = opened(&second);
  run(db, "INSERT INTO note (text) VALUES ('a')");
  (void)umask(old);
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
  assert_int_equal(stat(folder_file(&folder, "state.db-wal"), &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
  assert_int_equal(number(db, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"), 1);
  assert_int_equal(number(db, "PRAGMA synchronous"), 2);
  assert_int_equal(number(db, "PRAGMA foreign_keys"), 1);
  assert_int_equal(number(db, "PRAGMA temp_store"), 2);
  assert_int_equal(number(db, "PRAGMA secure_delete"), 1);
  cv_db_close(db);
}

static void test_open_mode_is_taken_back(void **state) {
  (void)state;
  struct stat info;
  cv_db_close(opened(&first));
  assert_int_equal(chmod(path, 0644), 0);
  cv_db_close(opened(&first));
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
}

static void test_missing_steps_are_applied_to_old_data(void **state) {
  (void)state;
  struct cv_db *db = opened(&first);
  run(db, "INSERT INTO note (text) VALUES ('old')");
  cv_db_close(db);
  db = opened(&second);
  assert_int_equal(number(db, "SELECT count(*) FROM note WHERE text = 'old' AND colour = 'grey'"), 1);
  assert_int_equal(number(db, "PRAGMA user_version"), 2);
  cv_db_close(db);
  cv_db_close(opened(&second));
}

static void test_failing_step_leaves_the_old_version_whole(void **state) {
  (void)state;
  struct cv_db *db = opened(&first);
  run(db, "INSERT INTO note (text) VALUES ('old')");
  cv_db_close(db);
  assert_refused(&broken, CV_ERR_DB, "schema step to version 3");
  db = opened(&first);
  assert_int_equal(number(db, "PRAGMA user_version"), 1);
  assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table'"), 1);
  cv_db_close(db);
}

static void test_later_version_is_refused(void **state) {
  (void)state;
  cv_db_close(opened(&second));
  assert_refused(&first, CV_ERR_VERSION, "expected at most 1");
  assert_unreadable(&first, CV_ERR_VERSION, "expected at most 1");
}

/* One that a program before 0.3.0 wrote, as every database says. */
static void test_earlier_version_is_refused_with_advice(void **state) {
  (void)state;
  static const struct cv_db_schema later = {
      .application_id = OURS, .steps = steps, .first = 3, .count = 1, .advice = "dig it in"};
  static const char line[] = "schema version 2, of a Crowdveil before 0.3.0, whose files are not read; dig it in";
  cv_db_close(opened(&second));
  assert_refused(&later, CV_ERR_VERSION, line);
  assert_unreadable(&later, CV_ERR_VERSION, line);
  cv_db_close(opened(&second));
}

static void test_database_of_another_program_is_refused_untouched(void **state) {
  (void)state;
  cv_db_close(opened(&foreign));
  assert_refused(&first, CV_ERR_INVALID, "0xfedcba98");
  cv_db_close(opened(&foreign));
  /* A database without an application id that is not empty belongs to another program, too. */
  sqlite3 *plain = NULL;
  assert_int_equal(unlink(path), 0);
  assert_int_equal(sqlite3_open(path, &plain), SQLITE_OK);
  assert_int_equal(sqlite3_exec(plain, "CREATE TABLE theirs (a)", NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_close(plain), SQLITE_OK);
  assert_int_equal(chmod(path, 0640), 0);
  assert_refused(&first, CV_ERR_INVALID, "another program");
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 07777, 0640);
}

static void test_file_that_is_no_database_is_refused(void **state) {
  (void)state;
  char text[2000];
  memset(text, 'x', sizeof(text));
  write_bytes(0, text, sizeof(text));
  assert_refused(&first, CV_ERR_DAMAGED, "not a database");
  assert_unreadable(&first, CV_ERR_DAMAGED, "not a database");
}

static void fill_pages(void) {
  struct cv_db *db = opened(&first);
  run(db,
      "WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2000)"
      "INSERT INTO note SELECT i, hex(randomblob(40)) FROM c");
  cv_db_close(db);
}

static void test_damaged_pages_are_refused(void **state) {
  (void)state;
  fill_pages();
  char garbage[4096];
  memset(garbage, 0xa5, sizeof(garbage));
  write_bytes(4096L * 5, garbage, sizeof(garbage));
  assert_refused(&first, CV_ERR_DAMAGED, "damaged");
  assert_unreadable(&first, CV_ERR_DAMAGED, "damaged");
}

static void test_cut_file_is_refused(void **state) {
  (void)state;
  fill_pages();
  assert_int_equal(truncate(path, 4096 * 3), 0);
  assert_refused(&first, CV_ERR_DAMAGED, "damaged");
}

static void test_missing_folder_and_odd_paths_are_named(void **state) {
  (void)state;
  (void)snprintf(path_text, sizeof(path_text), "%s/none/state.db", folder.path);
  assert_refused(&first, CV_ERR_NOT_FOUND, "folder");
  (void)snprintf(path_text, sizeof(path_text), "%s", folder.path);
  assert_refused(&first, CV_ERR_INVALID, "not a regular file");
  struct cv_db *db = NULL;
  struct cv_why why = {{0}};
  assert_int_equal(cv_db_open("x.db", "no-such-vfs", &first, &db, &why), CV_ERR_DB);
  assert_non_null(strstr(why.text, "no-such-vfs"));
}

static void test_reading_changes_nothing(void **state) {
  (void)state;
  assert_unreadable(&first, CV_ERR_NOT_FOUND, "no such database");
  assert_int_equal(access(path, F_OK), -1);
  struct cv_db *db = opened(&first);
  run(db, "INSERT INTO note (text) VALUES ('a')");
  cv_db_close(db);
  assert_unreadable(&second, CV_ERR_VERSION, "expected 2");
  assert_int_equal(cv_db_open_readonly(path, &first, &db, NULL), CV_OK);
  assert_int_equal(number(db, "SELECT count(*) FROM note"), 1);
  assert_int_equal(cv_db_begin(db, NULL), CV_OK);
  assert_int_equal(cv_db_exec(db, "DELETE FROM note", NULL), CV_ERR_DENIED);
  cv_db_rollback(db);
  assert_int_equal(number(db, "SELECT count(*) FROM note"), 1);
  cv_db_close(db);
}

static int try_to_read(void) {
  struct cv_db *db = NULL;
  struct cv_why why = {{0}};
  enum cv_err err = cv_db_open_readonly(path, &first, &db, &why);
  return err == CV_ERR_STATE && strstr(why.text, "in use") != NULL ? 0 : 1;
}

static int try_to_write(void) {
  struct cv_db *db = NULL;
  struct cv_why why = {{0}};
  enum cv_err err = cv_db_open(path, NULL, &first, &db, &why);
  return err == CV_ERR_STATE && strstr(why.text, "in use") != NULL ? 0 : 1;
}

static void test_live_database_is_locked(void **state) {
  (void)state;
  struct cv_db *db = opened(&first);
  assert_int_equal(in_other_process(try_to_read), 0);
  assert_int_equal(in_other_process(try_to_write), 0);
  run(db, "INSERT INTO note (text) VALUES ('still works')");
  cv_db_close(db);
}

static void test_rollback_undoes_and_commit_keeps(void **state) {
  (void)state;
  struct cv_db *db = opened(&first);
  cv_db_rollback(db); /* nothing to undo */
  assert_int_equal(cv_db_begin(db, NULL), CV_OK);
  run(db, "INSERT INTO note (text) VALUES ('undone')");
  cv_db_rollback(db);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(cv_db_begin(db, NULL), CV_OK);
    run(db, "INSERT INTO note (text) VALUES ('kept')");
    assert_int_equal(cv_db_commit(db, NULL), CV_OK);
  }
  assert_int_equal(cv_db_commit(db, NULL), CV_ERR_DB);
  cv_db_close(db);
  db = opened(&first);
  assert_int_equal(number(db, "SELECT count(*) FROM note WHERE text = 'kept'"), 3);
  assert_int_equal(number(db, "SELECT count(*) FROM note"), 3);
  cv_db_close(db);
}

static int commit_then_die(void) {
  struct cv_db *db = NULL;
  return cv_db_open(path, NULL, &first, &db, NULL) == CV_OK && cv_db_begin(db, NULL) == CV_OK &&
                 cv_db_exec(db, "INSERT INTO note (text) VALUES ('kept')", NULL) == CV_OK &&
                 cv_db_commit(db, NULL) == CV_OK && cv_db_begin(db, NULL) == CV_OK &&
                 cv_db_exec(db, "INSERT INTO note (text) VALUES ('unfinished')", NULL) == CV_OK
             ? 0
             : 1;
}

static void test_a_crash_keeps_what_was_committed_and_nothing_else(void **state) {
  (void)state;
  assert_int_equal(in_other_process(commit_then_die), 0);
  struct cv_db *db = opened(&first);
  assert_int_equal(number(db, "SELECT count(*) FROM note"), 1);
  assert_int_equal(number(db, "SELECT count(*) FROM note WHERE text = 'kept'"), 1);
  cv_db_close(db);
}

static void test_statements_are_cached_and_come_back_clean(void **state) {
  (void)state;
  static const char insert[] = "INSERT INTO note (text) VALUES (ifnull(?, 'unbound'))";
  struct cv_db *db = opened(&first);
  sqlite3_stmt *stmt = NULL, *again = NULL;
  assert_int_equal(cv_db_prepare(db, insert, &stmt, NULL), CV_OK);
  assert_int_equal(sqlite3_bind_text(stmt, 1, "bound", -1, SQLITE_STATIC), SQLITE_OK);
  assert_int_equal(cv_db_run(db, stmt, NULL), CV_OK);
  assert_int_equal(cv_db_prepare(db, insert, &again, NULL), CV_OK);
  assert_ptr_equal(again, stmt);
  assert_int_equal(cv_db_run(db, again, NULL), CV_OK);
  assert_int_equal(number(db, "SELECT count(*) FROM note WHERE text = 'unbound'"), 1);
  static char texts[40][20]; /* 40 addresses */
  for (size_t i = 0; i < CV_COUNT(texts); i++) {
    (void)snprintf(texts[i], sizeof(texts[i]), "SELECT %zu", i);
    assert_int_equal(number(db, texts[i]), (int64_t)i);
  }
  assert_int_equal(cv_db_prepare(db, insert, &again, NULL), CV_OK);
  assert_ptr_equal(again, stmt);
  cv_db_close(db);
}

static void test_errors_of_statements_are_told_apart(void **state) {
  (void)state;
  struct cv_db *db = opened(&second);
  sqlite3_stmt *stmt = NULL;
  struct cv_why why = {{0}};
  run(db, "INSERT INTO note (id, text) VALUES (1, 'a')");
  assert_int_equal(cv_db_exec(db, "INSERT INTO note (id, text) VALUES (1, 'b')", &why), CV_ERR_EXISTS);
  assert_one_line(&why, "note.id");
  assert_int_equal(cv_db_exec(db, "INSERT INTO tag VALUES (99)", &why), CV_ERR_INVALID);
  assert_one_line(&why, "FOREIGN KEY");
  assert_int_equal(cv_db_prepare(db, "SELEKT", &stmt, &why), CV_ERR_DB);
  assert_null(stmt);
  assert_one_line(&why, "SELEKT");
  assert_int_equal(cv_db_prepare(db, "SELECT 1", &stmt, &why), CV_OK);
  assert_int_equal(cv_db_run(db, stmt, &why), CV_ERR_DB);
  assert_one_line(&why, "no rows");
  cv_db_close(db);
}

static void test_rows_are_stepped_to_the_end(void **state) {
  (void)state;
  struct cv_db *db = opened(&first);
  sqlite3_stmt *stmt = NULL;
  run(db, "INSERT INTO note (text) VALUES ('a'), ('b')");
  assert_int_equal(cv_db_prepare(db, "SELECT id FROM note ORDER BY id", &stmt, NULL), CV_OK);
  int row = 0, rows = 0;
  for (int pass = 0; pass < 2; pass++) {
    do {
      assert_int_equal(cv_db_step(db, stmt, &row, NULL), CV_OK);
      rows += row;
    } while (row);
  }
  assert_int_equal(rows, 4);
  cv_db_close(db);
}

static int occurrences(const char *file, const char *needle) {
  static char content[1 << 20];
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  ssize_t n = read(fd, content, sizeof(content));
  (void)close(fd);
  int found = 0;
  for (const char *at = content; n > 0; found++) {
    at = memmem(at, (size_t)(content + n - at), needle, strlen(needle));
    if (at == NULL) {
      return found;
    }
    at++;
  }
  return found;
}

static void test_deleted_content_is_gone_from_the_file(void **state) {
  (void)state;
  struct cv_db *db = opened(&first);
  run(db, "INSERT INTO note (text) VALUES ('a partial sum that must not stay')");
  cv_db_close(db);
  assert_int_equal(occurrences(path, "partial sum"), 1);
  db = opened(&first);
  run(db, "DELETE FROM note");
  cv_db_close(db);
  assert_int_equal(occurrences(path, "partial sum"), 0);
  assert_int_equal(occurrences(folder_file(&folder, "state.db-wal"), "partial sum"), 0);
}

static void count_step(void *data) {
  (*(unsigned *)data)++;
}

/* A sign that a long statement goes on; each of the ones above is too short for it. */
static void test_long_work_is_reported(void **state) {
  static const char counting[] =
      "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT max(i) FROM n";
  struct cv_db *db = opened(&first);
  unsigned seen = 0;
  cv_db_on_step(count_step, &seen);
  assert_int_equal(number(db, "SELECT count(*) FROM note"), 0);
  assert_int_equal(seen, 0);
  assert_int_equal(number(db, counting), 100000);
  assert_in_range(seen, 10, 10000);
  unsigned before = seen;
  cv_db_on_step(NULL, NULL);
  assert_int_equal(number(db, counting), 100000);
  assert_int_equal(seen, before);
  cv_db_close(db);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(test_new_database_is_private_and_durable),
      IN_FOLDER(test_open_mode_is_taken_back),
      IN_FOLDER(test_missing_steps_are_applied_to_old_data),
      IN_FOLDER(test_failing_step_leaves_the_old_version_whole),
      IN_FOLDER(test_earlier_version_is_refused_with_advice),
      IN_FOLDER(test_later_version_is_refused),
      IN_FOLDER(test_database_of_another_program_is_refused_untouched),
      IN_FOLDER(test_file_that_is_no_database_is_refused),
      IN_FOLDER(test_damaged_pages_are_refused),
      IN_FOLDER(test_cut_file_is_refused),
      IN_FOLDER(test_missing_folder_and_odd_paths_are_named),
      IN_FOLDER(test_reading_changes_nothing),
      IN_FOLDER(test_live_database_is_locked),
      IN_FOLDER(test_rollback_undoes_and_commit_keeps),
      IN_FOLDER(test_a_crash_keeps_what_was_committed_and_nothing_else),
      IN_FOLDER(test_statements_are_cached_and_come_back_clean),
      IN_FOLDER(test_errors_of_statements_are_told_apart),
      IN_FOLDER(test_rows_are_stepped_to_the_end),
      IN_FOLDER(test_deleted_content_is_gone_from_the_file),
      IN_FOLDER(test_long_work_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
