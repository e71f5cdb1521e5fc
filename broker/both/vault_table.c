/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/vault_table.h"

#include <string.h>

#include "common/db/db_hook.h"

static enum cv_err put(void *db, const struct cv_vault_row *row, struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db,
                       "INSERT INTO wrapped_key VALUES (?1, ?2, ?3, ?4)"
                       " ON CONFLICT DO UPDATE SET master = excluded.master, wrapped = excluded.wrapped",
                       &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, row->campaign);
  (void)sqlite3_bind_int64(stmt, 2, row->use);
  (void)sqlite3_bind_blob(stmt, 3, row->master.bytes, sizeof(row->master.bytes), SQLITE_STATIC);
  (void)sqlite3_bind_blob(stmt, 4, row->wrapped, sizeof(row->wrapped), SQLITE_STATIC);
  return cv_db_run(db, stmt, why);
}

static enum cv_err drop(void *db, uint32_t campaign, struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db, "DELETE FROM wrapped_key WHERE campaign = ?", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, campaign);
  return cv_db_run(db, stmt, why);
}

/* Steps a statement of the four columns to its row, if there is one, and resets it. */
static enum cv_err take(struct cv_db *db, sqlite3_stmt *stmt, struct cv_vault_row *ret, bool *ret_found,
                        struct cv_why *why) {
  int row;
  CV_TRY(cv_db_step(db, stmt, &row, why));
  *ret_found = row != 0;
  if (row == 0) {
    return CV_OK;
  }
  *ret = (struct cv_vault_row){.campaign = (uint32_t)sqlite3_column_int64(stmt, 0),
                               .use = (uint32_t)sqlite3_column_int64(stmt, 1),
                               .is_whole = sqlite3_column_bytes(stmt, 2) == (int)sizeof(ret->master.bytes) &&
                                           sqlite3_column_bytes(stmt, 3) == (int)sizeof(ret->wrapped)};
  if (ret->is_whole) {
    memcpy(ret->master.bytes, sqlite3_column_blob(stmt, 2), sizeof(ret->master.bytes));
    memcpy(ret->wrapped, sqlite3_column_blob(stmt, 3), sizeof(ret->wrapped));
  }
  (void)sqlite3_reset(stmt);
  return CV_OK;
}

static enum cv_err get(void *db, uint32_t campaign, uint32_t use, struct cv_vault_row *ret, bool *ret_found,
                       struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db, "SELECT campaign, use, master, wrapped FROM wrapped_key WHERE campaign = ? AND use = ?",
                       &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, campaign);
  (void)sqlite3_bind_int64(stmt, 2, use);
  return take(db, stmt, ret, ret_found, why);
}

static enum cv_err other(void *db, const struct cv_key_id *master, struct cv_vault_row *ret, bool *ret_found,
                         struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db, "SELECT campaign, use, master, wrapped FROM wrapped_key WHERE master <> ? LIMIT 1", &stmt,
                       why));
  (void)sqlite3_bind_blob(stmt, 1, master->bytes, sizeof(master->bytes), SQLITE_STATIC);
  return take(db, stmt, ret, ret_found, why);
}

static enum cv_err masters(void *db, enum cv_err (*take_id)(void *, const struct cv_key_id *, struct cv_why *),
                           void *taker, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db, "SELECT DISTINCT master FROM wrapped_key", &stmt, why));
  for (;;) {
    struct cv_key_id id;
    CV_TRY(cv_db_step(db, stmt, &row, why));
    if (row == 0) {
      return CV_OK;
    }
    bool is_whole = sqlite3_column_bytes(stmt, 0) == (int)sizeof(id.bytes); /* else the row's code tells */
    if (is_whole) {
      memcpy(id.bytes, sqlite3_column_blob(stmt, 0), sizeof(id.bytes));
    }
    enum cv_err err = take_id(taker, is_whole ? &id : NULL, why);
    if (err != CV_OK) {
      (void)sqlite3_reset(stmt);
      return err;
    }
  }
}

static enum cv_err count(void *db, const struct cv_key_id *master, struct cv_vault_count *ret, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db, "SELECT count(*), count(*) FILTER (WHERE master = ?) FROM wrapped_key", &stmt, why));
  (void)sqlite3_bind_blob(stmt, 1, master->bytes, sizeof(master->bytes), SQLITE_STATIC);
  CV_TRY(cv_db_step(db, stmt, &row, why));
  *ret = (struct cv_vault_count){.keys = 0};
  if (row != 0) {
    *ret = (struct cv_vault_count){.keys = (uint64_t)sqlite3_column_int64(stmt, 0),
                                   .current = (uint64_t)sqlite3_column_int64(stmt, 1)};
    (void)sqlite3_reset(stmt);
  }
  return CV_OK;
}

static enum cv_err begin(void *db, struct cv_why *why) {
  return cv_db_begin(db, why);
}

static enum cv_err commit(void *db, struct cv_why *why) {
  return cv_db_commit(db, why);
}

static void rollback(void *db) {
  cv_db_rollback(db);
}

/* The old rows are in the log and may be in pages that are not yet overwritten. */
static enum cv_err scrub(void *db, struct cv_why *why) {
  return cv_db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", why);
}

static const char *name(void *db) {
  return cv_db_path(db);
}

struct cv_vault_rows cv_vault_table(struct cv_db *db) {
  static const struct cv_vault_rows_ops ops = {.put = put,
                                               .drop = drop,
                                               .get = get,
                                               .other = other,
                                               .masters = masters,
                                               .count = count,
                                               .begin = begin,
                                               .commit = commit,
                                               .rollback = rollback,
                                               .scrub = scrub,
                                               .name = name};
  return (struct cv_vault_rows){.ops = &ops, .data = db};
}
