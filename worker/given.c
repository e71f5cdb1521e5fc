/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/given.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/spec.h"
#include "common/db/proof.h"

struct cv_given {
  struct cv_db *db;
  uint64_t first, last;
  uint32_t *scores;
  bool *noted;     /* by worker: it is in the list below */
  uint32_t *which; /* workers whose counts are not stored, from the first on */
  uint32_t count;
  char campaign[CV_NAME_BYTES]; /* whose rows are noted */
  uint32_t *row;                /* that are not stored */
  size_t rows, rows_cap;
};

static const char *const steps[] = {
    "CREATE TABLE given (worker INTEGER PRIMARY KEY, scores INTEGER NOT NULL CHECK (scores BETWEEN 1 AND 4294967295))",
    CV_PROOF_TABLE
    "CREATE TABLE data_set (campaign TEXT PRIMARY KEY, print INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE used_row (campaign TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (campaign, row)) WITHOUT ROWID",
};

static const struct cv_db_schema schema = {
    .application_id = 0x43565747, /* "CVWG" */
    .steps = steps,
    .count = (int)CV_COUNT(steps),
};

static enum cv_err load(struct cv_given *given, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(given->db, "SELECT worker, scores FROM given WHERE worker BETWEEN ?1 AND ?2", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)given->first);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)given->last);
  for (;;) {
    CV_TRY(cv_db_step(given->db, stmt, &row, why));
    if (row == 0) {
      return CV_OK;
    }
    given->scores[(uint64_t)sqlite3_column_int64(stmt, 0) - given->first] = (uint32_t)sqlite3_column_int64(stmt, 1);
  }
}

/* A count or a row that a disk or a slip has changed would give away what was given already. */
static enum cv_err prove(struct cv_given *given, struct cv_why *why) {
  static const struct cv_proof_part part[] = {{.table = "given"}, {.table = "data_set"}, {.table = "used_row"}};
  const struct cv_proof_config config = {.part = part, .parts = CV_COUNT(part), .adopts = true};
  enum cv_proof proof;
  return cv_proof_begin(given->db, &config, &proof, why);
}

static enum cv_err open_file(struct cv_given *given, const char *state, struct cv_why *why) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof(path), "%s/given.db", state) >= (int)sizeof(path)) {
    return cv_fail(why, CV_ERR_INVALID, "state: the path is too long");
  }
  CV_TRY(cv_db_open(path, NULL, &schema, &given->db, why));
  CV_TRY(prove(given, why));
  return load(given, why);
}

enum cv_err cv_given_open(const char *state, uint64_t first, uint64_t last, struct cv_given **ret, struct cv_why *why) {
  struct cv_given *given = calloc(1, sizeof(*given));
  if (given == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  given->first = first;
  given->last = last;
  given->scores = calloc(last - first + 1, sizeof(*given->scores));
  given->noted = calloc(last - first + 1, sizeof(*given->noted));
  given->which = calloc(last - first + 1, sizeof(*given->which));
  bool has_room = given->scores != NULL && given->noted != NULL && given->which != NULL;
  enum cv_err err = has_room ? open_file(given, state, why) : cv_fail(why, CV_ERR_NOMEM, "out of memory");
  if (err != CV_OK) {
    cv_given_close(given);
    return err;
  }
  *ret = given;
  return CV_OK;
}

void cv_given_close(struct cv_given *given) {
  if (given == NULL) {
    return;
  }
  cv_db_close(given->db);
  free(given->scores);
  free(given->noted);
  free(given->which);
  free(given->row);
  free(given);
}

const uint32_t *cv_given_scores(const struct cv_given *given) {
  return given->scores;
}

void cv_given_note(struct cv_given *given, uint64_t worker, uint32_t scores) {
  uint32_t at = (uint32_t)(worker - given->first);
  given->scores[at] = scores;
  if (!given->noted[at]) {
    given->noted[at] = true;
    given->which[given->count++] = at;
  }
}

/* ---- rows ---- */

static enum cv_err check_print(struct cv_given *given, uint64_t print, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(given->db, "SELECT print FROM data_set WHERE campaign = ?1", &stmt, why));
  (void)sqlite3_bind_text(stmt, 1, given->campaign, -1, SQLITE_STATIC);
  CV_TRY(cv_db_step(given->db, stmt, &row, why));
  if (row != 0) {
    bool is_same = (uint64_t)sqlite3_column_int64(stmt, 0) == print;
    (void)sqlite3_reset(stmt);
    return is_same ? CV_OK
                   : cv_fail(why, CV_ERR_INVALID,
                             "state: rows of another data set were given for campaign \"%s\"; expected the file as it "
                             "was, or a new folder, whose workers give every row once more",
                             given->campaign);
  }
  CV_TRY(cv_db_prepare(given->db, "INSERT INTO data_set (campaign, print) VALUES (?1, ?2)", &stmt, why));
  (void)sqlite3_bind_text(stmt, 1, given->campaign, -1, SQLITE_STATIC);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)print);
  return cv_db_run(given->db, stmt, why);
}

enum cv_err cv_given_rows(struct cv_given *given, const char *campaign, uint64_t print,
                          bool (*told)(void *data, uint64_t row), void *data, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  (void)snprintf(given->campaign, sizeof(given->campaign), "%s", campaign);
  CV_TRY(cv_db_begin(given->db, why));
  enum cv_err err = check_print(given, print, why);
  if (err == CV_OK) {
    err = cv_db_commit(given->db, why);
  }
  if (err != CV_OK) {
    cv_db_rollback(given->db);
    return err;
  }
  CV_TRY(cv_db_prepare(given->db, "SELECT row FROM used_row WHERE campaign = ?1 ORDER BY row", &stmt, why));
  (void)sqlite3_bind_text(stmt, 1, given->campaign, -1, SQLITE_STATIC);
  for (;;) {
    CV_TRY(cv_db_step(given->db, stmt, &row, why));
    if (row == 0) {
      return CV_OK;
    }
    if (!told(data, (uint64_t)sqlite3_column_int64(stmt, 0))) {
      (void)sqlite3_reset(stmt);
      return cv_fail(why, CV_ERR_INVALID, "state: a row was given that the data of campaign \"%s\" do not have",
                     given->campaign);
    }
  }
}

enum cv_err cv_given_note_rows(struct cv_given *given, const uint32_t *row, size_t rows) {
  if (given->rows + rows > given->rows_cap) {
    size_t cap = 2 * (given->rows + rows);
    uint32_t *grown = realloc(given->row, cap * sizeof(*grown));
    if (grown == NULL) {
      return CV_ERR_NOMEM;
    }
    given->row = grown;
    given->rows_cap = cap;
  }
  if (rows > 0) {
    memcpy(given->row + given->rows, row, rows * sizeof(*row));
    given->rows += rows;
  }
  return CV_OK;
}

/* ---- keeping ---- */

static enum cv_err write_rows(struct cv_given *given, struct cv_why *why) {
  for (size_t i = 0; i < given->rows; i++) {
    sqlite3_stmt *stmt;
    CV_TRY(cv_db_prepare(given->db, "INSERT INTO used_row (campaign, row) VALUES (?1, ?2)", &stmt, why));
    (void)sqlite3_bind_text(stmt, 1, given->campaign, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(stmt, 2, given->row[i]);
    CV_TRY(cv_db_run(given->db, stmt, why));
  }
  return CV_OK;
}

static enum cv_err write_all(struct cv_given *given, struct cv_why *why) {
  CV_TRY(cv_db_begin(given->db, why));
  CV_TRY(write_rows(given, why));
  for (uint32_t i = 0; i < given->count; i++) {
    sqlite3_stmt *stmt;
    CV_TRY(cv_db_prepare(given->db, "INSERT OR REPLACE INTO given (worker, scores) VALUES (?1, ?2)", &stmt, why));
    (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)(given->first + given->which[i]));
    (void)sqlite3_bind_int64(stmt, 2, given->scores[given->which[i]]);
    CV_TRY(cv_db_run(given->db, stmt, why));
  }
  return cv_db_commit(given->db, why);
}

enum cv_err cv_given_keep(struct cv_given *given, struct cv_why *why) {
  if (given->count == 0 && given->rows == 0) {
    return CV_OK;
  }
  enum cv_err err = write_all(given, why);
  if (err != CV_OK) {
    cv_db_rollback(given->db);
    return err;
  }
  for (uint32_t i = 0; i < given->count; i++) {
    given->noted[given->which[i]] = false;
  }
  given->count = 0;
  given->rows = 0;
  return CV_OK;
}
