/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/store.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/spec.h"
#include "common/db/proof.h"

struct cv_worker_store {
  struct cv_db *db;
  uint64_t first, last;
  uint32_t *scores;
  bool *noted;     /* by worker: the worker is in `which` */
  uint32_t *which; /* workers with changed counts, as offsets from `first` */
  uint32_t count;
  char campaign[CV_NAME_BYTES]; /* the campaign of `row` */
  uint32_t *row;                /* rows not stored yet */
  size_t rows, rows_cap;
};

static const char *const steps[] = {
    "CREATE TABLE given (worker INTEGER PRIMARY KEY, scores INTEGER NOT NULL CHECK (scores BETWEEN 1 AND "
    "4294967295));" CV_PROOF_TABLE
    "CREATE TABLE data_set (campaign TEXT PRIMARY KEY, print INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE used_row (campaign TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (campaign, row)) WITHOUT ROWID",
};

static const struct cv_db_schema schema = {
    .application_id = 0x43565747, /* "CVWG" */
    .steps = steps,
    .count = (int)CV_COUNT(steps),
    .first = 3,
    .advice = "move the files in its folder away; the next start makes new ones, and counts given scores from 0",
};

static enum cv_err load(struct cv_worker_store *store, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  /* Counts of other ranges stay in the file: the certificate may have been for more workers before. */
  CV_TRY(cv_db_prepare(store->db, "SELECT worker, scores FROM given WHERE worker BETWEEN ?1 AND ?2", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)store->first);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)store->last);
  for (;;) {
    CV_TRY(cv_db_step(store->db, stmt, &row, why));
    if (row == 0) {
      return CV_OK;
    }
    store->scores[(uint64_t)sqlite3_column_int64(stmt, 0) - store->first] = (uint32_t)sqlite3_column_int64(stmt, 1);
  }
}

/* Verifies the checksums: a damaged count or row would let a worker give a score twice. */
static enum cv_err prove(struct cv_db *db, struct cv_why *why) {
  static const struct cv_proof_part part[] = {{.table = "given"}, {.table = "data_set"}, {.table = "used_row"}};
  const struct cv_proof_config config = {.part = part, .parts = CV_COUNT(part)};
  return cv_proof_begin(db, &config, why);
}

static enum cv_err open_file(struct cv_worker_store *store, const char *state, struct cv_why *why) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof(path), "%s/given.db", state) >= (int)sizeof(path)) {
    return cv_fail(why, CV_ERR_INVALID, "state: the path is too long");
  }
  CV_TRY(cv_db_open(path, NULL, &schema, &store->db, why));
  CV_TRY(prove(store->db, why));
  return load(store, why);
}

enum cv_err cv_worker_store_open(const char *state, uint64_t first, uint64_t last, struct cv_worker_store **ret,
                                 struct cv_why *why) {
  struct cv_worker_store *store = calloc(1, sizeof(*store));
  if (store == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  store->first = first;
  store->last = last;
  store->scores = calloc(last - first + 1, sizeof(*store->scores));
  store->noted = calloc(last - first + 1, sizeof(*store->noted));
  store->which = calloc(last - first + 1, sizeof(*store->which));
  bool has_room = store->scores != NULL && store->noted != NULL && store->which != NULL;
  enum cv_err err = has_room ? open_file(store, state, why) : cv_fail(why, CV_ERR_NOMEM, "out of memory");
  if (err != CV_OK) {
    cv_worker_store_close(store);
    return err;
  }
  *ret = store;
  return CV_OK;
}

void cv_worker_store_close(struct cv_worker_store *store) {
  if (store == NULL) {
    return;
  }
  cv_db_close(store->db);
  free(store->scores);
  free(store->noted);
  free(store->which);
  free(store->row);
  free(store);
}

enum cv_err cv_worker_check_copy(const void *settings, const char *path, uint64_t *ret_commit, struct cv_why *why) {
  struct cv_db *db;
  CV_TRY(cv_db_open_readonly(path, &schema, &db, why));
  enum cv_err err = prove(db, why);
  cv_db_close(db);
  *ret_commit = 0;
  return err;
}

struct cv_db *cv_worker_store_database(const struct cv_worker_store *store) {
  return store->db;
}

const uint32_t *cv_worker_store_scores(const struct cv_worker_store *store) {
  return store->scores;
}

void cv_worker_store_note(struct cv_worker_store *store, uint64_t worker, uint32_t scores) {
  uint32_t at = (uint32_t)(worker - store->first);
  store->scores[at] = scores;
  /* Each worker is listed once per commit, so that `which` has room for all of them. */
  if (!store->noted[at]) {
    store->noted[at] = true;
    store->which[store->count++] = at;
  }
}

/* ---- rows ---- */

static enum cv_err check_print(struct cv_worker_store *store, uint64_t print, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(store->db, "SELECT print FROM data_set WHERE campaign = ?1", &stmt, why));
  (void)sqlite3_bind_text(stmt, 1, store->campaign, -1, SQLITE_STATIC);
  CV_TRY(cv_db_step(store->db, stmt, &row, why));
  if (row != 0) {
    /* Rows are known by number: in another file the same numbers are other scores, some of them already given. */
    bool is_same = (uint64_t)sqlite3_column_int64(stmt, 0) == print;
    (void)sqlite3_reset(stmt);
    return is_same ? CV_OK
                   : cv_fail(why, CV_ERR_INVALID,
                             "state: the stored rows of campaign \"%s\" belong to another data set; expected the "
                             "unchanged data file, or a new state folder, with which workers give every row again",
                             store->campaign);
  }
  CV_TRY(cv_db_prepare(store->db, "INSERT INTO data_set (campaign, print) VALUES (?1, ?2)", &stmt, why));
  (void)sqlite3_bind_text(stmt, 1, store->campaign, -1, SQLITE_STATIC);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)print);
  return cv_db_run(store->db, stmt, why);
}

enum cv_err cv_worker_store_rows(struct cv_worker_store *store, const char *campaign, uint64_t print,
                                 bool (*told)(void *data, uint64_t row), void *data, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  (void)snprintf(store->campaign, sizeof(store->campaign), "%s", campaign);
  /* Committed before the first row is given, so that no stored row lacks the fingerprint of its data. */
  CV_TRY(cv_db_begin(store->db, why));
  enum cv_err err = check_print(store, print, why);
  if (err == CV_OK) {
    err = cv_db_commit(store->db, why);
  }
  if (err != CV_OK) {
    cv_db_rollback(store->db);
    return err;
  }
  CV_TRY(cv_db_prepare(store->db, "SELECT row FROM used_row WHERE campaign = ?1 ORDER BY row", &stmt, why));
  (void)sqlite3_bind_text(stmt, 1, store->campaign, -1, SQLITE_STATIC);
  for (;;) {
    CV_TRY(cv_db_step(store->db, stmt, &row, why));
    if (row == 0) {
      return CV_OK;
    }
    if (!told(data, (uint64_t)sqlite3_column_int64(stmt, 0))) {
      (void)sqlite3_reset(stmt);
      return cv_fail(why, CV_ERR_INVALID, "state: a stored row is not in the data of campaign \"%s\"", store->campaign);
    }
  }
}

enum cv_err cv_worker_store_note_rows(struct cv_worker_store *store, const uint32_t *row, size_t rows) {
  CV_TRY(CV_ARRAY_ROOM(store->row, store->rows + rows, store->rows_cap));
  if (rows > 0) {
    memcpy(store->row + store->rows, row, rows * sizeof(*row));
    store->rows += rows;
  }
  return CV_OK;
}

/* ---- writing ---- */

static enum cv_err write_rows(struct cv_worker_store *store, struct cv_why *why) {
  for (size_t i = 0; i < store->rows; i++) {
    sqlite3_stmt *stmt;
    CV_TRY(cv_db_prepare(store->db, "INSERT INTO used_row (campaign, row) VALUES (?1, ?2)", &stmt, why));
    (void)sqlite3_bind_text(stmt, 1, store->campaign, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(stmt, 2, store->row[i]);
    CV_TRY(cv_db_run(store->db, stmt, why));
  }
  return CV_OK;
}

static enum cv_err write_all(struct cv_worker_store *store, struct cv_why *why) {
  CV_TRY(cv_db_begin(store->db, why));
  /* Rows and counts in one transaction: a row that is given counts for its worker, whatever crashes. */
  CV_TRY(write_rows(store, why));
  for (uint32_t i = 0; i < store->count; i++) {
    sqlite3_stmt *stmt;
    CV_TRY(cv_db_prepare(store->db, "INSERT OR REPLACE INTO given (worker, scores) VALUES (?1, ?2)", &stmt, why));
    (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)store->first + store->which[i]);
    (void)sqlite3_bind_int64(stmt, 2, store->scores[store->which[i]]);
    CV_TRY(cv_db_run(store->db, stmt, why));
  }
  return cv_db_commit(store->db, why);
}

enum cv_err cv_worker_store_commit(struct cv_worker_store *store, struct cv_why *why) {
  /* Arrivals alone change nothing that must outlive the process. */
  if (store->count == 0 && store->rows == 0) {
    return CV_OK;
  }
  enum cv_err err = write_all(store, why);
  if (err != CV_OK) {
    cv_db_rollback(store->db);
    return err;
  }
  /* Only after the commit: after an error the daemon stops, and the frame that these belong to is not sent. */
  for (uint32_t i = 0; i < store->count; i++) {
    store->noted[store->which[i]] = false;
  }
  store->count = 0;
  store->rows = 0;
  return CV_OK;
}
