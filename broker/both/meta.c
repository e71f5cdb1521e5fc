/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/meta.h"

#include <string.h>

#include "common/crypto/crypto.h"

enum cv_err cv_meta_read(struct cv_db *db, const char *whose, struct cv_anchor_mark *ret, bool *ret_found,
                         struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(
      db, "SELECT database_id, last_commit, last_hash, campaigns, releases, tokens, promised_micro FROM meta", &stmt,
      why));
  CV_TRY(cv_db_step(db, stmt, &row, why));
  *ret_found = row != 0;
  if (row == 0) {
    return CV_OK;
  }
  if (sqlite3_column_bytes(stmt, 0) != CV_DATABASE_ID_BYTES || sqlite3_column_bytes(stmt, 2) != CV_DIGEST_BYTES) {
    (void)sqlite3_reset(stmt);
    return cv_fail(why, CV_ERR_DAMAGED, "the %s's database is damaged: its identity has the wrong length", whose);
  }
  memcpy(ret->database, sqlite3_column_blob(stmt, 0), CV_DATABASE_ID_BYTES);
  ret->commit = (uint64_t)sqlite3_column_int64(stmt, 1);
  memcpy(ret->hash.bytes, sqlite3_column_blob(stmt, 2), CV_DIGEST_BYTES);
  ret->totals = (struct cv_totals){.campaigns = (uint64_t)sqlite3_column_int64(stmt, 3),
                                   .releases = (uint64_t)sqlite3_column_int64(stmt, 4),
                                   .tokens = (uint64_t)sqlite3_column_int64(stmt, 5),
                                   .promised_micro = (uint64_t)sqlite3_column_int64(stmt, 6)};
  (void)sqlite3_reset(stmt);
  return CV_OK;
}

enum cv_err cv_meta_new(const char *whose, struct cv_anchor_mark *ret, struct cv_why *why) {
  struct cv_key key;
  enum cv_err err = cv_key_random(&key);
  if (err != CV_OK) {
    return cv_fail(why, err, "the %s's database: %s", whose, cv_err_text(err));
  }
  *ret = (struct cv_anchor_mark){.commit = 0};
  memcpy(ret->database, key.bytes, CV_DATABASE_ID_BYTES);
  cv_key_wipe(&key);
  return CV_OK;
}

enum cv_err cv_meta_insert(struct cv_db *db, const struct cv_anchor_mark *mark, struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db, "INSERT INTO meta VALUES (1, ?, 0, ?, 0, 0, 0, 0)", &stmt, why));
  (void)sqlite3_bind_blob(stmt, 1, mark->database, CV_DATABASE_ID_BYTES, SQLITE_STATIC);
  (void)sqlite3_bind_blob(stmt, 2, mark->hash.bytes, CV_DIGEST_BYTES, SQLITE_STATIC);
  return cv_db_run(db, stmt, why);
}

enum cv_err cv_meta_update(struct cv_db *db, const struct cv_anchor_mark *mark, struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db,
                       "UPDATE meta SET last_commit = ?1, last_hash = ?2, campaigns = ?3, releases = ?4, tokens = ?5, "
                       "promised_micro = ?6",
                       &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)mark->commit);
  (void)sqlite3_bind_blob(stmt, 2, mark->hash.bytes, CV_DIGEST_BYTES, SQLITE_STATIC);
  (void)sqlite3_bind_int64(stmt, 3, (sqlite3_int64)mark->totals.campaigns);
  (void)sqlite3_bind_int64(stmt, 4, (sqlite3_int64)mark->totals.releases);
  (void)sqlite3_bind_int64(stmt, 5, (sqlite3_int64)mark->totals.tokens);
  (void)sqlite3_bind_int64(stmt, 6, (sqlite3_int64)mark->totals.promised_micro);
  return cv_db_run(db, stmt, why);
}

/* ---- the anchor ---- */

static bool is_of_one(const struct cv_anchor_mark *a, const struct cv_anchor_mark *b) {
  return memcmp(a->database, b->database, sizeof(a->database)) == 0;
}

/* Two databases that went on from one copy reach the same number with different hashes. */
static bool is_forked(const struct cv_anchor_mark *a, const struct cv_anchor_mark *b) {
  return a->commit == b->commit && !cv_digest_is_same(&a->hash, &b->hash);
}

struct cv_store_marks cv_meta_marks(const struct cv_anchor_mark *mark, bool found, const struct cv_anchor_mark *anchor,
                                    bool is_anchored) {
  bool is_same = is_anchored && found && is_of_one(mark, anchor) && !is_forked(mark, anchor);
  return (struct cv_store_marks){.is_anchored = is_anchored, .is_same = is_same, .anchor = *anchor, .database = *mark};
}

/* Whether the database is of the anchor's history and not older than the anchor. */
static enum cv_err compare(const struct cv_store_marks *marks, const struct cv_store_files *files, struct cv_why *why) {
  unsigned long long have = marks->database.commit, want = marks->anchor.commit;
  if (!is_of_one(&marks->database, &marks->anchor)) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s: anchor of another database; expected the anchor of %s", files->anchor,
                   files->database);
  }
  /* An older database would draw noise again for what has already left. */
  if (have < want) {
    return cv_fail(why, CV_ERR_DAMAGED,
                   "%s is at commit %llu, its anchor %s at %llu; expected the database not to be older than its anchor",
                   files->database, have, files->anchor, want);
  }
  /* What the anchor's database has sent, this one does not know. */
  return !is_forked(&marks->database, &marks->anchor)
             ? CV_OK
             : cv_fail(why, CV_ERR_DAMAGED, "%s: history at commit %llu differs from its anchor %s", files->database,
                       have, files->anchor);
}

enum cv_err cv_meta_check(const struct cv_store_marks *marks, bool found, const struct cv_store_files *files,
                          struct cv_why *why) {
  if (!found && marks->is_anchored) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s is new but its anchor %s is at commit %llu", files->database, files->anchor,
                   (unsigned long long)marks->anchor.commit);
  }
  /* Commit 0 is allowed: the first start may have stopped after it made the database and before it wrote the anchor.
   * Nothing has been sent by then. */
  if (found && !marks->is_anchored && marks->database.commit > 0) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s is at commit %llu but its anchor %s is missing", files->database,
                   (unsigned long long)marks->database.commit, files->anchor);
  }
  return marks->is_anchored ? compare(marks, files, why) : CV_OK;
}
