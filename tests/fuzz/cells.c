/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/cells.h"

#include <fcntl.h>
#include <sqlite3.h>

#include "common/db/db_hook.h"
#include "common/db/proof.h"

enum { CELLS = 128, EDITS = 6, FILE_BYTES = 1 << 20 };

static char path[64];
static uint8_t *template;
static size_t template_n;
static struct cell { char table[32], column[32]; } cell[CELLS];
static size_t cells;

static void drop_files(void) {
  static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
  for (size_t i = 0; i < CV_COUNT(ends); i++) {
    char name[80];
    (void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
    (void)unlink(name);
  }
}

const char *cells_path(void) {
  (void)snprintf(path, sizeof(path), "/dev/shm/crowdveil-fuzz-%d.db", (int)getpid());
  drop_files();
  (void)atexit(drop_files);
  return path;
}

/* ---- the template ---- */

static int keep_cell(void *data, int n, char **value, char **name) {
  (void)data;
  (void)name;
  CV_REQUIRE(n == 2 && cells < CELLS);
  (void)snprintf(cell[cells].table, sizeof(cell[cells].table), "%s", value[0]);
  (void)snprintf(cell[cells++].column, sizeof(cell[cells].column), "%s", value[1]);
  return 0;
}

void cells_keep(void) {
  sqlite3 *db;
  CV_REQUIRE(sqlite3_open(path, &db) == SQLITE_OK);
  CV_REQUIRE(sqlite3_exec(db,
                          "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c"
                          " WHERE m.type = 'table' ORDER BY 1, 2",
                          keep_cell, NULL, NULL) == SQLITE_OK);
  CV_REQUIRE(sqlite3_close(db) == SQLITE_OK && cells > 20);
  FILE *file = fopen(path, "rb");
  template = malloc(FILE_BYTES);
  CV_REQUIRE(file != NULL && template != NULL);
  template_n = fread(template, 1, FILE_BYTES, file);
  CV_REQUIRE(fclose(file) == 0 && template_n > 0 && template_n < FILE_BYTES);
}

/* ---- an input ---- */

static void bind_value(sqlite3_stmt *stmt, struct cv_reader *in, uint8_t kind) {
  static const int64_t special[] = {0, 1, -1, 2, 3, 4096, INT64_MAX, INT64_MIN, UINT32_MAX, 1 << 20};
  uint8_t byte = cv_read_u8(in);
  size_t left = (size_t)(in->end - in->at), n = byte < left ? byte : left;
  switch (kind % 6) {
    case 0:
      (void)sqlite3_bind_int64(stmt, 1, special[byte % CV_COUNT(special)]);
      break;
    case 1:
      (void)sqlite3_bind_int64(stmt, 1, (int64_t)cv_read_u64(in));
      break;
    case 2:
      (void)sqlite3_bind_double(stmt, 1, cv_read_f64(in));
      break;
    case 3:
      (void)sqlite3_bind_text(stmt, 1, (const char *)cv_read(in, n), (int)n, SQLITE_TRANSIENT);
      break;
    case 4:
      (void)sqlite3_bind_blob(stmt, 1, cv_read(in, n), (int)n, SQLITE_TRANSIENT);
      break;
    default:
      (void)sqlite3_bind_null(stmt, 1);
  }
}

/* Changes the cells of a column that equal that of one row; changes that the schema does not allow are skipped. */
static void edit(sqlite3 *db, struct cv_reader *in) {
  const struct cell *at = &cell[cv_read_u8(in) % cells];
  unsigned row = cv_read_u8(in) % 8;
  uint8_t kind = cv_read_u8(in);
  char sql[300];
  sqlite3_stmt *stmt;
  if (kind >= 0xf8) {
    (void)snprintf(sql, sizeof(sql), "DELETE FROM %s WHERE %s IS (SELECT %s FROM %s LIMIT 1 OFFSET %u) AND ?1 IS NOT 7",
                   at->table, at->column, at->column, at->table, row);
  } else if (kind >= 0xe0) { /* one byte of a blob */
    (void)snprintf(sql, sizeof(sql), "UPDATE %s SET %s = CAST(substr(%s, 1, %u) || char(?1) || substr(%s, %u) AS BLOB)",
                   at->table, at->column, at->column, kind * row, at->column, kind * row + 2);
  } else {
    (void)snprintf(sql, sizeof(sql),
                   "UPDATE OR IGNORE %s SET %s = ?1 WHERE %s IS (SELECT %s FROM %s LIMIT 1 OFFSET %u)", at->table,
                   at->column, at->column, at->column, at->table, row);
  }
  CV_REQUIRE(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK);
  bind_value(stmt, in, kind >= 0xe0 ? 0 : kind);
  (void)sqlite3_step(stmt);
  (void)sqlite3_finalize(stmt);
}

void cells_write(struct cv_reader *in) {
  sqlite3 *db;
  drop_files();
  int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  CV_REQUIRE(fd >= 0 && write(fd, template, template_n) == (ssize_t)template_n && close(fd) == 0);
  CV_REQUIRE(sqlite3_open(path, &db) == SQLITE_OK);
  CV_REQUIRE(sqlite3_exec(db, "PRAGMA ignore_check_constraints = 1; PRAGMA synchronous = 0", NULL, NULL, NULL) ==
             SQLITE_OK);
  for (int i = 0; i < EDITS && in->at < in->end; i++) {
    edit(db, in);
  }
  CV_REQUIRE(sqlite3_close(db) == SQLITE_OK);
}

/* ---- in place of common/db/proof.c: the rows' codes would end most inputs at once ---- */

static void row_code(sqlite3_context *context, int arguments, sqlite3_value **argument) {
  (void)arguments;
  (void)argument;
  sqlite3_result_zeroblob(context, CV_PROOF_CODE_BYTES);
}

enum cv_err cv_proof_begin(struct cv_db *db, const struct cv_proof_config *config, struct cv_why *why) {
  (void)config;
  int failed =
      sqlite3_create_function_v2(cv_db_handle(db), "row_code", -1, SQLITE_UTF8, NULL, row_code, NULL, NULL, NULL);
  return failed == SQLITE_OK ? CV_OK : cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", cv_db_path(db));
}
