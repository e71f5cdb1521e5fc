/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/store/sqlite.h"

#include <stdlib.h>
#include <string.h>

#include "broker/both/ids.h"
#include "broker/both/meta.h"
#include "broker/both/vault_table.h"
#include "broker/store/proof.h"
#include "common/base/before.h"
#include "common/db/strangers.h"

static const char *const schema_steps[] = {
    CV_META_TABLE
    "CREATE TABLE campaign (id INTEGER PRIMARY KEY, image BLOB NOT NULL, state BLOB, standings BLOB, code BLOB);"
    "CREATE TABLE plan (campaign INTEGER NOT NULL, number INTEGER NOT NULL, image BLOB NOT NULL, code BLOB,"
    "  PRIMARY KEY (campaign, number)) WITHOUT ROWID;"
    "CREATE TABLE release (campaign INTEGER NOT NULL, number INTEGER NOT NULL, image BLOB NOT NULL, code BLOB,"
    "  PRIMARY KEY (campaign, number)) WITHOUT ROWID;"
    "CREATE TABLE ledger (campaign INTEGER NOT NULL, arm INTEGER NOT NULL, image BLOB NOT NULL, code BLOB,"
    "  PRIMARY KEY (campaign, arm)) WITHOUT ROWID;"
    "CREATE TABLE recovery (number INTEGER PRIMARY KEY, image BLOB NOT NULL, code BLOB);"
    "CREATE TABLE journal (id INTEGER PRIMARY KEY, made INTEGER NOT NULL, campaign INTEGER NOT NULL,"
    "  sealed BLOB NOT NULL);"
    "CREATE TABLE chunk (campaign INTEGER NOT NULL, kind INTEGER NOT NULL, number INTEGER NOT NULL,"
    "  made INTEGER NOT NULL, sealed BLOB NOT NULL, PRIMARY KEY (campaign, kind, number));"
    /* what a start reads of ended campaigns; campaign 0: sums over all forgotten ones */
    "CREATE TABLE ended (campaign INTEGER PRIMARY KEY, image BLOB NOT NULL, code BLOB);" CV_PROOF_TABLE CV_VAULT_TABLE,
};

static const struct cv_db_schema schema = {
    .application_id = 0x43564252, /* "CVBR" */
    .steps = schema_steps,
    .count = (int)CV_COUNT(schema_steps),
    .first = 6,
    .advice = CV_BEFORE_BROKER,
};

struct sqlite {
  struct cv_db *db;
  struct cv_vault *vault;     /* borrowed */
  struct cv_mac *mac;         /* computes the rows' codes */
  struct cv_anchor_mark mark; /* of the commit that is being made */
  struct cv_sqlite_opened to; /* while it is opened */
};

/* ---- opening ---- */

/* Checks every row against its code; `is_new`: they are made in the open transaction. */
static enum cv_err prove(struct sqlite *store, const struct cv_store_files *files, bool is_new, struct cv_why *why) {
  struct cv_key key;
  CV_TRY(cv_vault_key(store->vault, 0, CV_VAULT_ROWS, &key, why));
  enum cv_err err = cv_sqlite_proof_begin(store->db, &key, is_new, &store->mac, why);
  cv_key_wipe(&key);
  if (err == CV_ERR_DAMAGED && !files->readonly) {
    struct cv_why reason = *why;
    return cv_fail(why, err, "%.400s; check seal_key first; if it is right, restore a copy and run crowdveil recover",
                   reason.text);
  }
  return err;
}

static enum cv_err open_vault(struct sqlite *store, struct cv_why *why) {
  return cv_vault_open(store->vault, cv_vault_table(store->db), store->to.mark.database, why);
}

static enum cv_err write_new(struct sqlite *store, const struct cv_store_files *files, struct cv_why *why) {
  CV_TRY(cv_meta_insert(store->db, &store->to.mark, why));
  CV_TRY(cv_vault_begin(store->vault, why));
  CV_TRY(prove(store, files, true, why));
  return cv_db_commit(store->db, why);
}

/* A new database's identity, keys and codes, in one transaction. */
static enum cv_err make_new(struct sqlite *store, const struct cv_store_files *files, struct cv_why *why) {
  CV_TRY(cv_meta_new("broker", &store->to.mark, why)); /* it starts again at campaign 1 */
  CV_TRY(open_vault(store, why));
  CV_TRY(cv_db_begin(store->db, why));
  enum cv_err err = write_new(store, files, why);
  if (err != CV_OK) {
    cv_db_rollback(store->db);
  }
  return err;
}

static enum cv_err open_found(struct sqlite *store, const struct cv_store_files *files, struct cv_why *why) {
  CV_TRY(open_vault(store, why));
  CV_TRY(prove(store, files, false, why));
  return files->readonly ? CV_OK : cv_vault_keep(store->vault, why);
}

/* For examining: neither creates nor changes a file. */
static enum cv_err open_readonly(struct sqlite *store, const struct cv_store_files *files, struct cv_why *why) {
  struct cv_anchor_mark mark = {0};
  bool anchored = false, found = false;
  CV_TRY(cv_anchor_peek(files->anchor, &anchored, &mark, why));
  CV_TRY(cv_db_open_readonly(files->database, &schema, &store->db, why));
  CV_TRY(cv_meta_read(store->db, "broker", &store->to.mark, &found, why));
  if (!found) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s is empty", files->database);
  }
  CV_TRY(open_found(store, files, why));
  store->to.found = cv_meta_marks(&store->to.mark, true, &mark, anchored);
  return CV_OK;
}

/* For running and for repair: opens or creates both files. */
static enum cv_err open_both(struct sqlite *store, const struct cv_store_files *files, struct cv_why *why) {
  struct cv_anchor_mark mark = {0};
  bool anchored = false, found = false;
  CV_TRY(cv_db_open(files->database, files->vfs, &schema, &store->db, why));
  CV_TRY(cv_meta_read(store->db, "broker", &store->to.mark, &found, why));
  CV_TRY(cv_anchor_open(files->anchor, &store->to.anchor, &anchored, &mark, why));
  /* First the order of commits, then the codes: an older copy gets the error that names both commits. */
  const struct cv_store_marks marks = cv_meta_marks(&store->to.mark, found, &mark, anchored);
  CV_TRY(files->repair ? CV_OK : cv_meta_check(&marks, found, files, why));
  CV_TRY(found ? open_found(store, files, why) : make_new(store, files, why));
  if (files->repair) {
    store->to.found = cv_meta_marks(&store->to.mark, found, &mark, anchored);
    return CV_OK;
  }
  /* A crash between commit and anchor leaves the anchor one commit behind. It catches up here, before this run sends
   * anything; a new database gets its first mark. */
  return cv_anchor_write(store->to.anchor, &store->to.mark, why);
}

static void close_all(void *data) {
  struct sqlite *store = data;
  /* The codes' key must outlive the database, which uses it. */
  cv_db_close(store->db);
  cv_mac_free(store->mac);
  free(store);
}

/* ---- committing ---- */

/* Parameters of all statements: campaign, number, bytes, chunk kind, commit. Journal and chunks carry no code of their
 * own, because the tag of a sealed value enters the sums of codes (common/db/proof.h). */
static const char *sql_of(enum cv_op_kind kind) {
  switch (kind) {
    case CV_OP_CAMPAIGN:
      return "INSERT INTO campaign (id, image, code) VALUES (?1, ?3, row_code(1, ?1, ?3, NULL, NULL))";
    case CV_OP_STATE:
      return "UPDATE campaign SET state = ?3, code = row_code(1, id, image, ?3, standings) WHERE id = ?1";
    case CV_OP_STANDINGS:
      return "UPDATE campaign SET standings = ?3, code = row_code(1, id, image, state, ?3) WHERE id = ?1";
    case CV_OP_PLAN:
      return "INSERT INTO plan VALUES (?1, ?2, ?3, row_code(2, ?1, ?2, ?3))";
    case CV_OP_RELEASE:
      return "INSERT INTO release VALUES (?1, ?2, ?3, row_code(3, ?1, ?2, ?3))";
    case CV_OP_LEDGER:
      return "INSERT INTO ledger VALUES (?1, ?2, ?3, row_code(4, ?1, ?2, ?3))"
             " ON CONFLICT DO UPDATE SET image = excluded.image, code = excluded.code";
    case CV_OP_RECOVERY:
      return "INSERT INTO recovery VALUES (?2, ?3, row_code(5, ?2, ?3))";
    case CV_OP_JOURNAL:
      return "INSERT INTO journal (campaign, made, sealed) VALUES (?1, ?2, ?3)";
    case CV_OP_CHUNK:
      return "INSERT INTO chunk (campaign, number, sealed, kind, made) VALUES (?1, ?2, ?3, ?4, ?5)"
             " ON CONFLICT DO UPDATE SET sealed = excluded.sealed, made = excluded.made";
    case CV_OP_UNCHUNK:
      return "DELETE FROM chunk WHERE campaign = ?1 AND number = ?2 AND kind = ?4";
    case CV_OP_ENDED:
      return "INSERT INTO ended VALUES (?1, ?3, row_code(8, ?1, ?3))"
             " ON CONFLICT DO UPDATE SET image = excluded.image, code = excluded.code";
    case CV_OP_FORGET:
      return "DELETE FROM ended WHERE campaign = ?1";
    case CV_OP_TRIM:
      return "DELETE FROM journal WHERE made < ?2";
    default:
      return NULL;
  }
}

static enum cv_err delete_rows(struct sqlite *store, const char *sql, uint32_t campaign, uint64_t number,
                               struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(store->db, sql, &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, campaign);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)number);
  return cv_db_run(store->db, stmt, why);
}

static enum cv_err purge(void *data, uint32_t campaign, struct cv_why *why) {
  CV_TRY(delete_rows(data, "DELETE FROM journal WHERE campaign = ?1", campaign, 0, why));
  return delete_rows(data, "DELETE FROM chunk WHERE campaign = ?1", campaign, 0, why);
}

static enum cv_err drop(void *data, uint32_t campaign, uint64_t upto, struct cv_why *why) {
  CV_TRY(delete_rows(data, "DELETE FROM plan WHERE campaign = ?1 AND number <= ?2", campaign, upto, why));
  CV_TRY(delete_rows(data, "DELETE FROM release WHERE campaign = ?1 AND number <= ?2", campaign, upto, why));
  if (upto != CV_DROP_ALL) {
    return CV_OK;
  }
  /* The description goes last: until then a restart continues the deletion from the record. */
  CV_TRY(delete_rows(data, "DELETE FROM ledger WHERE campaign = ?1", campaign, 0, why));
  return delete_rows(data, "DELETE FROM campaign WHERE id = ?1", campaign, 0, why);
}

static enum cv_err begin(void *data, const struct cv_anchor_mark *mark, struct cv_why *why) {
  struct sqlite *store = data;
  store->mark = *mark;
  return cv_db_begin(store->db, why);
}

static enum cv_err write(void *data, const struct cv_op *op, const uint8_t *bytes, size_t n, struct cv_why *why) {
  const struct sqlite *store = data;
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(store->db, sql_of(op->kind), &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, op->campaign);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)op->number);
  /* SQLite binds a null pointer as NULL, which the columns refuse; an operation without bytes stores an empty blob. */
  (void)sqlite3_bind_blob(stmt, 3, n > 0 ? (const void *)bytes : "", (int)n, SQLITE_STATIC);
  (void)sqlite3_bind_int64(stmt, 4, op->chunk);
  (void)sqlite3_bind_int64(stmt, 5, (sqlite3_int64)store->mark.commit);
  return cv_db_run(store->db, stmt, why);
}

/* Operations first, then meta: the transaction stores both or neither. */
static enum cv_err commit(void *data, struct cv_why *why) {
  const struct sqlite *store = data;
  CV_TRY(cv_meta_update(store->db, &store->mark, why));
  return cv_db_commit(store->db, why);
}

static void rollback(void *data) {
  const struct sqlite *store = data;
  cv_db_rollback(store->db);
}

/* ---- reading ---- */

/* Columns: campaign, kind, number, commit, bytes. */
static const char *const queries[] = {
    [CV_BACKEND_CAMPAIGN] = "SELECT id, 0, 0, 0, image FROM campaign WHERE id = ?1",
    [CV_BACKEND_PLAN] = "SELECT campaign, 0, 0, 0, image FROM plan WHERE campaign = ?1 ORDER BY number",
    [CV_BACKEND_RELEASE] = "SELECT campaign, 0, 0, 0, image FROM release WHERE campaign = ?1 ORDER BY number",
    [CV_BACKEND_LEDGER] = "SELECT campaign, 0, 0, 0, image FROM ledger WHERE campaign = ?1 ORDER BY arm",
    [CV_BACKEND_STANDINGS] = "SELECT id, 0, 0, 0, standings FROM campaign WHERE id = ?1 AND standings IS NOT NULL",
    [CV_BACKEND_STATE] = "SELECT id, 0, 0, 0, state FROM campaign WHERE id = ?1 AND state IS NOT NULL",
    [CV_BACKEND_ENDED] = "SELECT campaign, 0, 0, 0, image FROM ended ORDER BY campaign",
    [CV_BACKEND_RECOVERY] = "SELECT number, 0, 0, 0, image FROM recovery ORDER BY number",
    [CV_BACKEND_CHUNK] = "SELECT campaign, kind, number, made, sealed FROM chunk",
    [CV_BACKEND_JOURNAL] = "SELECT campaign, 0, 0, made, sealed FROM journal ORDER BY id",
};

static enum cv_err each(void *data, enum cv_backend_query query, uint32_t campaign, cv_backend_row_fn *take,
                        void *taker, struct cv_why *why) {
  const struct sqlite *store = data;
  sqlite3_stmt *stmt;
  int found;
  CV_TRY(cv_db_prepare(store->db, queries[query], &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, campaign);
  for (;;) {
    CV_TRY(cv_db_step(store->db, stmt, &found, why));
    if (found == 0) {
      return CV_OK;
    }
    const struct cv_backend_row row = {.campaign = (uint32_t)sqlite3_column_int64(stmt, 0),
                                       .chunk = (uint32_t)sqlite3_column_int64(stmt, 1),
                                       .number = (uint64_t)sqlite3_column_int64(stmt, 2),
                                       .commit = (uint64_t)sqlite3_column_int64(stmt, 3),
                                       .bytes = sqlite3_column_blob(stmt, 4),
                                       .n = (size_t)sqlite3_column_bytes(stmt, 4)};
    enum cv_err err = take(taker, &row, why);
    if (err != CV_OK) {
      (void)sqlite3_reset(stmt);
      return err;
    }
  }
}

static enum cv_err next_open(void *data, uint32_t after, uint32_t *ret, struct cv_why *why) {
  static const char sql[] = "SELECT id FROM campaign WHERE id > ?1 AND id NOT IN (SELECT campaign FROM ended) LIMIT 1";
  const struct sqlite *store = data;
  return cv_ids_next(store->db, sql, after, ret, why);
}

static enum cv_err check(void *data, uint32_t campaign, struct cv_why *why) {
  const struct sqlite *store = data;
  return cv_proof_check(store->db, campaign, why);
}

static enum cv_err strangers(void *data, cv_db_stranger_fn *told, void *teller, struct cv_why *why) {
  const struct sqlite *store = data;
  return cv_db_strangers(store->db, told, teller, why);
}

static const struct cv_backend_ops ops = {.begin = begin,
                                          .write = write,
                                          .purge = purge,
                                          .drop = drop,
                                          .commit = commit,
                                          .rollback = rollback,
                                          .each = each,
                                          .next_open = next_open,
                                          .check = check,
                                          .strangers = strangers,
                                          .close = close_all};

enum cv_err cv_sqlite_open(const struct cv_store_files *files, struct cv_vault *vault, struct cv_sqlite_opened *ret,
                           struct cv_why *why) {
  struct sqlite *store = calloc(1, sizeof(*store));
  if (store == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  store->vault = vault;
  enum cv_err err = files->readonly ? open_readonly(store, files, why) : open_both(store, files, why);
  *ret = store->to;
  ret->db = store->db;
  ret->backend = (struct cv_backend){.ops = &ops, .data = store};
  return err;
}
