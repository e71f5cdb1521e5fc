/* SPDX-License-Identifier: Apache-2.0 */
/* Every change of a database by another program than its own is detected, and named. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include <stdio.h>
#include <string.h>

#include "common/db/db_hook.h"
#include "common/db/proof.h"
#include "tests/support/folder.h"

static const char *const steps[] = {
    "CREATE TABLE sum (campaign INTEGER NOT NULL, number INTEGER NOT NULL, noisy INTEGER NOT NULL, mean REAL,"
    "  code BLOB, PRIMARY KEY (campaign, number)) WITHOUT ROWID;"
    "CREATE TABLE note (campaign INTEGER PRIMARY KEY, text TEXT, image BLOB, code BLOB);"
    "CREATE TABLE box (id INTEGER PRIMARY KEY, campaign INTEGER NOT NULL, sealed BLOB NOT NULL);" CV_PROOF_TABLE,
};
static const struct cv_db_schema schema = {.application_id = 1, .steps = steps, .first = 1, .count = 1};

static const struct cv_proof_part parts[] = {
    {.table = "sum", .group = "campaign", .code = "code"},
    {.table = "note", .group = "campaign", .code = "code"},
    {.table = "box", .group = "campaign", .sealed = "sealed"},
};

static unsigned key;

/* A keyed code, strong enough for a test. */
static enum cv_err keyed(void *data, const void *bytes, size_t n, uint8_t ret[2 * CV_PROOF_CODE_BYTES]) {
  const uint8_t *at = bytes;
  uint64_t state = *(const unsigned *)data;
  for (size_t i = 0; i < n; i++) {
    state = (state ^ at[i]) * UINT64_C(0x9e3779b97f4a7c15);
    state ^= state >> 29;
  }
  for (size_t i = 0; i < 2 * CV_PROOF_CODE_BYTES; i++) {
    state = state * UINT64_C(0x9e3779b97f4a7c15) + i;
    ret[i] = (uint8_t)(state >> 40);
  }
  return CV_OK;
}

struct stage {
  struct folder folder;
  const char *path;
};

static enum cv_err prove(struct cv_db *db, bool is_new, struct cv_why *why) {
  const struct cv_proof_config config = {
      .part = parts, .parts = CV_COUNT(parts), .code = key != 0 ? keyed : NULL, .data = &key, .is_new = is_new};
  return cv_proof_begin(db, &config, why);
}

static struct cv_db *open_it(const struct stage *stage) {
  struct cv_db *db;
  struct cv_why why = {.text = ""};
  assert_int_equal(cv_db_open(stage->path, NULL, &schema, &db, &why), CV_OK);
  if (prove(db, false, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return db;
}

static void run(struct cv_db *db, const char *sql) {
  struct cv_why why = {.text = ""};
  if (cv_db_exec(db, sql, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static void transact(struct cv_db *db, const char *sql) {
  assert_int_equal(cv_db_begin(db, NULL), CV_OK);
  run(db, sql);
  assert_int_equal(cv_db_commit(db, NULL), CV_OK);
}

/* Changes by another program. */
static void tamper(const struct stage *stage, const char *sql) {
  sqlite3 *handle;
  char *error = NULL;
  assert_int_equal(sqlite3_open(stage->path, &handle), SQLITE_OK);
  if (sqlite3_exec(handle, sql, NULL, NULL, &error) != SQLITE_OK) {
    fail_msg("%s: %s", sql, error);
  }
  assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

static const char filling[] =
    "INSERT INTO sum VALUES (1, 1, 70, .5, row_code(0, 1, 1, 70, .5)), (1, 2, 71, 1.0, row_code(0, 1, 2, 71, 1.0)),"
    "  (2, 1, -3, NULL, row_code(0, 2, 1, -3, NULL));"
    "INSERT INTO note VALUES (1, 'a', x'00ff', row_code(1, 1, 'a', x'00ff')), (2, '', NULL, row_code(1, 2, '', NULL));"
    "INSERT INTO box (campaign, sealed) VALUES (1, zeroblob(40)), (1, randomblob(100)), (2, randomblob(5));"
    "UPDATE note SET text = 'b', code = row_code(1, campaign, 'b', image) WHERE campaign = 2;"
    "INSERT INTO sum VALUES (2, 1, -4, 2.0, row_code(0, 2, 1, -4, 2.0))"
    "  ON CONFLICT DO UPDATE SET noisy = excluded.noisy, mean = excluded.mean, code = excluded.code;"
    "INSERT OR REPLACE INTO note VALUES (1, 'c', x'01', row_code(1, 1, 'c', x'01'));"
    "DELETE FROM box WHERE length(sealed) = 5;";

static void make(struct stage *stage, unsigned with_key) {
  key = with_key;
  folder_make(&stage->folder);
  static char path[320];
  (void)snprintf(path, sizeof(path), "%s", folder_file(&stage->folder, "db"));
  stage->path = path;
  struct cv_db *db = open_it(stage);
  transact(db, filling);
  cv_db_close(db);
}

/* The database is refused with this line, also when opened read-only. */
static void refuses(const struct stage *stage, const char *line) {
  for (int readonly = 0; readonly < 2; readonly++) {
    struct cv_db *db;
    struct cv_why why = {.text = ""};
    assert_int_equal(readonly ? cv_db_open_readonly(stage->path, &schema, &db, &why)
                              : cv_db_open(stage->path, NULL, &schema, &db, &why),
                     CV_OK);
    assert_int_equal(prove(db, false, &why), CV_ERR_DAMAGED);
    if (strstr(why.text, line) == NULL) {
      fail_msg("\"%s\" is not in \"%s\"", line, why.text);
    }
    cv_db_close(db);
  }
}

static void test_what_the_program_writes_fits(void **state) {
  for (unsigned with_key = 0; with_key < 2; with_key++) {
    struct stage stage;
    make(&stage, with_key);
    struct cv_db *db = open_it(&stage);
    transact(db,
             "UPDATE box SET sealed = randomblob(50), campaign = 7; DELETE FROM sum WHERE campaign = 2;"
             "DELETE FROM note");
    assert_int_equal(cv_proof_check(db, 1, NULL), CV_OK);
    assert_int_equal(cv_proof_check(db, 7, NULL), CV_OK);
    assert_int_equal(cv_proof_check(db, 3, NULL), CV_OK);
    /* what is rolled back counts as not done */
    assert_int_equal(cv_db_begin(db, NULL), CV_OK);
    run(db, "DELETE FROM sum; UPDATE box SET campaign = 8");
    cv_db_rollback(db);
    transact(db, "INSERT INTO box (campaign, sealed) VALUES (9, x'01')");
    cv_db_close(db);
    cv_db_close(open_it(&stage));
    folder_remove(&stage.folder);
  }
}

static void test_what_another_program_writes_does_not(void **state) {
  static const struct {
    const char *sql, *line;
  } cases[] = {
      {"UPDATE sum SET noisy = noisy + 1 WHERE campaign = 1 AND number = 2", "table sum, row campaign 1, number 2: "},
      {"UPDATE sum SET mean = .25 WHERE campaign = 1 AND number = 1", "table sum, row campaign 1, number 1: "},
      {"UPDATE sum SET campaign = 3 WHERE campaign = 2", "table sum, row campaign 3, number 1: "},
      {"UPDATE note SET text = 'C' WHERE campaign = 1", "table note, row campaign 1: "},
      {"UPDATE note SET code = NULL WHERE campaign = 1", "table note, row campaign 1: "},
      {"DELETE FROM sum WHERE campaign = 1 AND number = 2", "table sum, campaign 1: 1 rows; expected the 2 "},
      {"DELETE FROM sum WHERE campaign = 2", "table sum, campaign 2: 0 rows; expected the 1 "},
      {"DELETE FROM box WHERE id = 2", "table box, campaign 1: 1 rows; expected the 2 "},
      {"UPDATE box SET sealed = randomblob(100) WHERE id = 2", "table box, campaign 1: a row was changed"},
      {"INSERT INTO box VALUES (9, 1, x'00')", "table box, campaign 1: 3 rows; expected the 2 "},
      {"INSERT INTO box VALUES (9, 4, x'00')", "table box, campaign 4: 1 rows; expected the 0 "},
      {"UPDATE proof SET codes = x'00' WHERE grp = -1", "table proof: a part of the database was restored"},
      {"UPDATE proof SET codes = zeroblob(length(codes)) WHERE grp = 1", "table sum, campaign 1: 2 rows; expected"},
      {"DELETE FROM proof WHERE grp = 2", "table sum, campaign 2: 1 rows; expected the 0 "},
      {"DELETE FROM proof WHERE grp = -1", "table proof: no codes of the rows"},
  };
  for (unsigned i = 0; i < 2 * CV_COUNT(cases); i++) {
    struct stage stage;
    make(&stage, i % 2);
    tamper(&stage, cases[i / 2].sql);
    refuses(&stage, cases[i / 2].line);
    folder_remove(&stage.folder);
  }
}

static void test_an_older_row_or_group_is_noticed(void **state) {
  struct stage stage;
  make(&stage, 1);
  tamper(&stage, "CREATE TABLE kept AS SELECT * FROM sum; CREATE TABLE kept_proof AS SELECT * FROM proof");
  struct cv_db *db = open_it(&stage);
  transact(db, "UPDATE sum SET noisy = 5, code = row_code(0, campaign, number, 5, mean) WHERE campaign = 1");
  cv_db_close(db);
  /* a row of the program, with its code of that time */
  tamper(&stage,
         "CREATE TABLE later AS SELECT * FROM sum;"
         "INSERT OR REPLACE INTO sum SELECT * FROM kept WHERE campaign = 1 AND number = 1");
  refuses(&stage, "table sum, campaign 1: a row was changed, or restored from an older copy; expected the 2 rows");
  /* all rows of the campaign, and their sums of that time */
  tamper(&stage,
         "INSERT OR REPLACE INTO sum SELECT * FROM kept;"
         "INSERT OR REPLACE INTO proof SELECT * FROM kept_proof WHERE grp = 1");
  refuses(&stage, "table proof: a part of the database was restored from an older copy");
  folder_remove(&stage.folder);
}

static void test_another_key_fits_nothing(void **state) {
  struct stage stage;
  make(&stage, 1);
  key = 2;
  refuses(&stage, "table sum, row campaign 1, number 1: not as it was stored");
  folder_remove(&stage.folder);
}

/* Their sums are stored with them, or neither is. */
static void test_the_rows_of_a_new_database_are_proven_with_their_commit(void **state) {
  for (int commits = 0; commits < 2; commits++) {
    struct stage stage;
    struct cv_db *db;
    key = 1;
    folder_make(&stage.folder);
    stage.path = folder_file(&stage.folder, "db");
    assert_int_equal(cv_db_open(stage.path, NULL, &schema, &db, NULL), CV_OK);
    assert_int_equal(cv_db_begin(db, NULL), CV_OK);
    run(db, "INSERT INTO box (campaign, sealed) VALUES (0, x'01'), (2, zeroblob(40))");
    assert_int_equal(prove(db, true, NULL), CV_OK);
    if (commits == 1) {
      assert_int_equal(cv_db_commit(db, NULL), CV_OK);
      transact(db, "INSERT INTO box (campaign, sealed) VALUES (2, x'02')");
    }
    cv_db_close(db);
    cv_db_close(open_it(&stage));
    tamper(&stage, "INSERT INTO box (campaign, sealed) VALUES (0, x'03')");
    refuses(&stage, commits == 1 ? "table box, campaign 0: 2 rows; expected the 1 " : "no codes of the rows");
    folder_remove(&stage.folder);
  }
}

static void test_a_group_is_read_again(void **state) {
  struct stage stage;
  struct cv_why why;
  make(&stage, 1);
  struct cv_db *db = open_it(&stage);
  assert_int_equal(cv_proof_check(db, 1, &why), CV_OK);
  /* a bit flips under the running program: no call reports it */
  (void)sqlite3_preupdate_hook(cv_db_handle(db), NULL, NULL);
  run(db, "UPDATE sum SET noisy = noisy + 2 WHERE campaign = 2");
  assert_int_equal(cv_proof_check(db, 1, &why), CV_OK);
  assert_int_equal(cv_proof_check(db, 2, &why), CV_ERR_DAMAGED);
  assert_non_null(strstr(why.text, "table sum, row campaign 2, number 1: not as it was stored"));
  run(db, "DELETE FROM sum WHERE campaign = 2");
  assert_int_equal(cv_proof_check(db, 2, &why), CV_ERR_DAMAGED);
  assert_non_null(strstr(why.text, "table sum, campaign 2: 0 rows; expected the 1 that were stored"));
  cv_db_close(db);
  folder_remove(&stage.folder);
}

static void test_a_trigger_in_the_file_does_not_run(void **state) {
  struct stage stage;
  make(&stage, 1);
  tamper(&stage, "CREATE TRIGGER theirs AFTER INSERT ON box BEGIN DELETE FROM sum; END");
  struct cv_db *db = open_it(&stage);
  transact(db, "INSERT INTO box (campaign, sealed) VALUES (1, x'00')");
  cv_db_close(db);
  cv_db_close(open_it(&stage));
  folder_remove(&stage.folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_the_program_writes_fits),
      cmocka_unit_test(test_what_another_program_writes_does_not),
      cmocka_unit_test(test_an_older_row_or_group_is_noticed),
      cmocka_unit_test(test_another_key_fits_nothing),
      cmocka_unit_test(test_the_rows_of_a_new_database_are_proven_with_their_commit),
      cmocka_unit_test(test_a_group_is_read_again),
      cmocka_unit_test(test_a_trigger_in_the_file_does_not_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
