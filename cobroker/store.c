/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/store.h"

#include "common/base/fingerprint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/both/meta.h"
#include "broker/both/vault_table.h"
#include "cobroker/restore.h"
#include "common/base/before.h"
#include "common/db/proof.h"
#include "common/db/strangers.h"

static const char *const schema_steps[] = {
    CV_META_TABLE
    "CREATE TABLE clear_row (campaign INTEGER NOT NULL, kind INTEGER NOT NULL, number INTEGER NOT NULL,"
    "  image BLOB NOT NULL, code BLOB, PRIMARY KEY (campaign, kind, number)) WITHOUT ROWID;"
    "CREATE TABLE sealed_row (campaign INTEGER NOT NULL, kind INTEGER NOT NULL, number INTEGER NOT NULL,"
    "  made INTEGER NOT NULL, sealed BLOB NOT NULL, PRIMARY KEY (campaign, kind, number));" CV_PROOF_TABLE
        CV_VAULT_TABLE,
};

static const struct cv_db_schema schema = {
    .application_id = 0x43564342, /* "CVCB" */
    .steps = schema_steps,
    .count = (int)CV_COUNT(schema_steps),
    .first = 2,
    .advice = CV_BEFORE_BROKER,
};

/* Numbers of the parts are those that row_code() is called with; new ones must be appended. */
static const struct cv_proof_part parts[] = {
    {.table = "meta"},
    {.table = "clear_row", .group = "campaign", .code = "code"},
    {.table = "sealed_row", .group = "campaign", .sealed = "sealed"},
    {.table = "wrapped_key", .group = "campaign", .sealed = "wrapped"},
};

struct cv_cobroker_store {
  struct cv_db *db;
  struct cv_mac *mac; /* computes the rows' codes */
  struct cv_anchor *anchor;
  struct cv_anchor_mark mark;  /* the database's own, after its last commit */
  struct cv_store_marks found; /* when the store was opened */
  struct cv_vault *vault;
  struct cv_buf scratch;
};

struct cv_db *cv_cobroker_store_database(const struct cv_cobroker_store *store) {
  return store->db;
}

bool cv_cobroker_store_exists(const char *database) {
  struct stat info;
  return stat(database, &info) == 0;
}

enum cv_err cv_cobroker_store_strangers(struct cv_cobroker_store *store, void (*told)(void *data, const char *what),
                                        void *data, struct cv_why *why) {
  return cv_db_strangers(store->db, told, data, why);
}

void cv_cobroker_store_marks(const struct cv_cobroker_store *store, struct cv_store_marks *ret) {
  *ret = store->found;
}

/* ---- sealing ---- */

/* The context that a sealed row is bound to: one that is moved to another row does not open. */
struct bound {
  uint8_t bytes[CV_DATABASE_ID_BYTES + 4 + 4 + 8 + 8];
};

/* Little-endian and of fixed length, so that different contexts never have equal bytes. */
static struct bound bind_to(const struct cv_cobroker_store *store, const struct cv_cobroker_name *name) {
  struct bound bound;
  uint8_t *at = bound.bytes;
  memcpy(at, store->mark.database, CV_DATABASE_ID_BYTES);
  at += CV_DATABASE_ID_BYTES;
  const uint64_t fields[] = {name->campaign | (uint64_t)name->kind << 32, name->number, name->commit};
  for (size_t i = 0; i < CV_COUNT(fields); i++) {
    for (int j = 0; j < 8; j++) {
      *at++ = (uint8_t)(fields[i] >> (8 * j));
    }
  }
  return bound;
}

/* Seals into the scratch buffer, under the commit that writes the row: an older value of the same row does not open
 * either. */
static enum cv_err seal(struct cv_cobroker_store *store, const struct cv_cobroker_name *name, const uint8_t *bytes,
                        size_t n, struct cv_why *why) {
  struct cv_seal *context;
  struct bound bound = bind_to(store, name);
  CV_TRY(cv_vault_seal(store->vault, name->campaign, &context, why));
  cv_buf_clear(&store->scratch);
  enum cv_err err = cv_seal_close(context, bound.bytes, sizeof(bound.bytes), bytes, n, &store->scratch);
  return err == CV_OK ? err
                      : cv_fail(why, err, "the co-broker's database: cannot seal for campaign %u: %s", name->campaign,
                                cv_err_text(err));
}

static enum cv_err unseal(struct cv_cobroker_store *store, const struct cv_cobroker_name *name, const void *sealed,
                          size_t n) {
  struct cv_seal *context;
  struct bound bound = bind_to(store, name);
  cv_buf_clear(&store->scratch);
  CV_TRY(cv_vault_seal(store->vault, name->campaign, &context, NULL));
  return cv_seal_open(context, bound.bytes, sizeof(bound.bytes), sealed, n, &store->scratch);
}

/* ---- opening ---- */

static enum cv_err code(void *data, const void *bytes, size_t n, uint8_t ret[2 * CV_PROOF_CODE_BYTES]) {
  return cv_mac_tag(data, bytes, n, ret, (size_t)2 * CV_PROOF_CODE_BYTES);
}

static enum cv_err make_mac(struct cv_cobroker_store *store, struct cv_why *why) {
  struct cv_key key;
  CV_TRY(cv_vault_key(store->vault, 0, CV_VAULT_ROWS, &key, why));
  enum cv_err err = cv_mac_new(&key, &store->mac);
  cv_key_wipe(&key);
  return err == CV_OK
             ? err
             : cv_fail(why, err, "the co-broker's database: cannot use the key of its codes: %s", cv_err_text(err));
}

/* Checks every row against its code; `is_new`: they are made in the open transaction. */
static enum cv_err prove(struct cv_cobroker_store *store, bool is_new, struct cv_why *why) {
  CV_TRY(make_mac(store, why));
  const struct cv_proof_config config = {
      .part = parts, .parts = CV_COUNT(parts), .code = code, .data = store->mac, .is_new = is_new};
  enum cv_err err = cv_proof_begin(store->db, &config, why);
  if (err == CV_ERR_DAMAGED) {
    struct cv_why reason = *why;
    return cv_fail(why, err, "%.400s; check seal_key first; if it is right, restore a copy and run crowdveil recover",
                   reason.text);
  }
  return err;
}

static enum cv_err open_vault(struct cv_cobroker_store *store, struct cv_why *why) {
  return cv_vault_open(store->vault, cv_vault_table(store->db), store->mark.database, why);
}

static enum cv_err write_new(struct cv_cobroker_store *store, struct cv_why *why) {
  CV_TRY(cv_meta_insert(store->db, &store->mark, why));
  CV_TRY(cv_vault_begin(store->vault, why));
  CV_TRY(prove(store, true, why));
  return cv_db_commit(store->db, why);
}

/* A new database's identity, keys and codes, in one transaction. */
static enum cv_err make_new(struct cv_cobroker_store *store, struct cv_why *why) {
  CV_TRY(cv_meta_new("co-broker", &store->mark, why));
  CV_TRY(open_vault(store, why));
  CV_TRY(cv_db_begin(store->db, why));
  enum cv_err err = write_new(store, why);
  if (err != CV_OK) {
    cv_db_rollback(store->db);
  }
  return err;
}

static enum cv_err open_found(struct cv_cobroker_store *store, const struct cv_store_files *files, struct cv_why *why) {
  CV_TRY(open_vault(store, why));
  CV_TRY(prove(store, false, why));
  return files->readonly ? CV_OK : cv_vault_keep(store->vault, why);
}

/* For examining: neither creates nor changes a file. */
static enum cv_err open_readonly(struct cv_cobroker_store *store, const struct cv_store_files *files,
                                 struct cv_why *why) {
  struct cv_anchor_mark mark = {0};
  bool anchored = false, found = false;
  CV_TRY(cv_anchor_peek(files->anchor, &anchored, &mark, why));
  CV_TRY(cv_db_open_readonly(files->database, &schema, &store->db, why));
  CV_TRY(cv_meta_read(store->db, "co-broker", &store->mark, &found, why));
  if (!found) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s is empty", files->database);
  }
  CV_TRY(open_found(store, files, why));
  store->found = cv_meta_marks(&store->mark, found, &mark, anchored);
  return CV_OK;
}

/* For running and for repair: opens or creates both files. */
static enum cv_err open_both(struct cv_cobroker_store *store, const struct cv_store_files *files, struct cv_why *why) {
  struct cv_anchor_mark mark = {0};
  bool anchored = false, found = false;
  CV_TRY(cv_db_open(files->database, files->vfs, &schema, &store->db, why));
  CV_TRY(cv_meta_read(store->db, "co-broker", &store->mark, &found, why));
  CV_TRY(cv_anchor_open(files->anchor, &store->anchor, &anchored, &mark, why));
  /* First the order of commits, then the codes: an older copy gets the error that names both commits. */
  const struct cv_store_marks marks = cv_meta_marks(&store->mark, found, &mark, anchored);
  CV_TRY(files->repair ? CV_OK : cv_meta_check(&marks, found, files, why));
  CV_TRY(found ? open_found(store, files, why) : make_new(store, why));
  if (files->repair) {
    store->found = cv_meta_marks(&store->mark, found, &mark, anchored);
    return CV_OK;
  }
  /* A crash between commit and anchor leaves the anchor one commit behind. It catches up here, before this run sends
   * anything; a new database gets its first mark. */
  return cv_anchor_write(store->anchor, &store->mark, why);
}

enum cv_err cv_cobroker_store_open(const struct cv_store_files *files, const struct cv_ring *ring,
                                   struct cv_cobroker_store **ret, struct cv_why *why) {
  struct cv_cobroker_store *store = calloc(1, sizeof(*store));
  if (store == NULL || cv_vault_new(ring, &store->vault) != CV_OK) {
    cv_cobroker_store_close(store);
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  enum cv_err err = files->readonly ? open_readonly(store, files, why) : open_both(store, files, why);
  if (err != CV_OK) {
    cv_cobroker_store_close(store);
    return err;
  }
  *ret = store;
  return CV_OK;
}

void cv_cobroker_store_close(struct cv_cobroker_store *store) {
  if (store == NULL) {
    return;
  }
  /* Secrets are wiped before their memory is freed. The codes' key must outlive the database, which uses it. */
  cv_vault_free(store->vault);
  if (store->scratch.data != NULL) {
    explicit_bzero(store->scratch.data, store->scratch.cap);
  }
  cv_buf_fini(&store->scratch);
  cv_anchor_close(store->anchor);
  cv_db_close(store->db);
  cv_mac_free(store->mac);
  free(store);
}

struct cv_vault *cv_cobroker_store_vault(struct cv_cobroker_store *store) {
  return store->vault;
}

/* ---- committing ---- */

/* Parameters of all statements: campaign, kind, number, bytes, commit. */
static const char *sql_of(enum cv_cobroker_row row) {
  switch (row) {
    /* Only inserted: writing one a second time violates the primary key and fails the commit, so that a plan with its
     * noise, a half, or a verify key can never be replaced by another one. */
    case CV_COROW_CAMPAIGN:
    case CV_COROW_PLAN:
    case CV_COROW_RECOVERY:
      return "INSERT INTO clear_row VALUES (?1, ?2, ?3, ?4, row_code(1, ?1, ?2, ?3, ?4))";
    case CV_COROW_LEDGER:
    case CV_COROW_STATE:
    case CV_COROW_ENDED:
      return "INSERT INTO clear_row VALUES (?1, ?2, ?3, ?4, row_code(1, ?1, ?2, ?3, ?4))"
             " ON CONFLICT DO UPDATE SET image = excluded.image, code = excluded.code";
    case CV_COROW_KEY:
    case CV_COROW_CLOSING:
    case CV_COROW_ANSWERS:
    case CV_COROW_JOURNAL:
      return "INSERT INTO sealed_row VALUES (?1, ?2, ?3, ?5, ?4)";
    default:
      return "INSERT INTO sealed_row VALUES (?1, ?2, ?3, ?5, ?4)"
             " ON CONFLICT DO UPDATE SET sealed = excluded.sealed, made = excluded.made";
  }
}

static enum cv_err delete_rows(struct cv_cobroker_store *store, const char *sql, const struct cv_cobroker_op *op,
                               struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(store->db, sql, &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, op->campaign);
  (void)sqlite3_bind_int64(stmt, 2, op->row);
  (void)sqlite3_bind_int64(stmt, 3, (sqlite3_int64)op->number);
  return cv_db_run(store->db, stmt, why);
}

static enum cv_err purge(struct cv_cobroker_store *store, const struct cv_cobroker_op *op, struct cv_why *why) {
  CV_TRY(delete_rows(store, "DELETE FROM sealed_row WHERE campaign = ?1", op, why));
  CV_TRY(delete_rows(store, "DELETE FROM clear_row WHERE campaign = ?1", op, why));
  /* What remains of its rows elsewhere, in the log or in copies of the files, opens no more without the key. */
  return cv_vault_drop(store->vault, op->campaign, why);
}

static enum cv_err put(struct cv_cobroker_store *store, const struct cv_cobroker_batch *batch,
                       const struct cv_cobroker_op *op, struct cv_why *why) {
  const uint8_t *bytes = batch->bytes.data + op->at;
  size_t n = op->n;
  if (op->row == CV_COROW_CAMPAIGN) {
    CV_TRY(cv_vault_renew(store->vault, op->campaign, CV_VAULT_SEAL, why));
  }
  if (cv_cobroker_row_is_sealed(op->row)) {
    const struct cv_cobroker_name name = {
        .campaign = op->campaign, .kind = op->row, .number = op->number, .commit = batch->commit};
    CV_TRY(seal(store, &name, bytes, n, why));
    bytes = store->scratch.data;
    n = store->scratch.len;
  }
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(store->db, sql_of(op->row), &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, op->campaign);
  (void)sqlite3_bind_int64(stmt, 2, op->row);
  (void)sqlite3_bind_int64(stmt, 3, (sqlite3_int64)op->number);
  (void)sqlite3_bind_blob(stmt, 4, bytes, (int)n, SQLITE_STATIC);
  (void)sqlite3_bind_int64(stmt, 5, (sqlite3_int64)batch->commit);
  return cv_db_run(store->db, stmt, why);
}

static enum cv_err apply(struct cv_cobroker_store *store, const struct cv_cobroker_batch *batch,
                         const struct cv_cobroker_op *op, struct cv_why *why) {
  switch (op->kind) {
    case CV_COOP_PURGE:
      return purge(store, op, why);
    case CV_COOP_TRIM:
      return delete_rows(store, "DELETE FROM sealed_row WHERE kind = ?2 AND number < ?3 AND ?1 = 0", op, why);
    case CV_COOP_DELETE:
      return delete_rows(store,
                         cv_cobroker_row_is_sealed(op->row)
                             ? "DELETE FROM sealed_row WHERE campaign = ?1 AND kind = ?2 AND number = ?3"
                             : "DELETE FROM clear_row WHERE campaign = ?1 AND kind = ?2 AND number = ?3",
                         op, why);
    default:
      return put(store, batch, op, why);
  }
}

/* The hash chain over commits covers every operation, sealed or not. It is never computed from stored rows: each hash
 * is stored with its commit and compared with the anchor's copy, so host byte order does no harm. */
static struct cv_digest chain(const struct cv_digest *before, const struct cv_cobroker_batch *batch) {
  struct cv_digest hash;
  cv_sha256(before->bytes, sizeof(before->bytes), batch->bytes.data, batch->bytes.len, &hash);
  for (size_t i = 0; i < batch->ops; i++) {
    const struct cv_cobroker_op *op = &batch->op[i];
    const uint64_t head[] = {batch->commit, op->kind, op->row, op->campaign, op->number, op->n};
    cv_digest_extend(&hash, head, sizeof(head), cv_sha256);
  }
  return hash;
}

static enum cv_err transact(struct cv_cobroker_store *store, const struct cv_cobroker_batch *batch,
                            const struct cv_anchor_mark *mark, struct cv_why *why) {
  /* Operations first, then meta: the transaction stores both or neither. */
  for (size_t i = 0; i < batch->ops; i++) {
    CV_TRY(apply(store, batch, &batch->op[i], why));
  }
  CV_TRY(cv_meta_update(store->db, mark, why));
  return cv_db_commit(store->db, why);
}

void cv_cobroker_store_leap(struct cv_cobroker_store *store, uint64_t commit) {
  CV_REQUIRE(commit > store->mark.commit);
  store->mark.commit = commit - 1;
}

enum cv_err cv_cobroker_store_anchor(struct cv_cobroker_store *store, struct cv_why *why) {
  return cv_anchor_write(store->anchor, &store->mark, why);
}

enum cv_err cv_cobroker_store_commit(struct cv_cobroker_store *store, const struct cv_cobroker_batch *batch,
                                     struct cv_why *why) {
  CV_REQUIRE(batch->commit == store->mark.commit + 1);
  /* The database commits first: a crash in between leaves it ahead of the anchor, which is accepted at the next start.
   * The other order would leave a database that looks older than its anchor. */
  struct cv_anchor_mark mark = store->mark;
  mark.commit = batch->commit;
  mark.hash = chain(&store->mark.hash, batch);
  mark.totals = batch->totals;
  CV_TRY(cv_db_begin(store->db, why));
  enum cv_err err = transact(store, batch, &mark, why);
  if (err != CV_OK) {
    cv_db_rollback(store->db);
    return err;
  }
  /* Only a stored commit advances the mark, from which the next hash and the anchor follow. */
  store->mark = mark;
  return cv_anchor_write(store->anchor, &mark, why);
}

/* ---- loading ---- */

static enum cv_err take_clear(struct cv_cobroker_store *store, struct cv_cobroker *core,
                              const struct cv_cobroker_name *name, sqlite3_stmt *stmt) {
  struct cv_reader row = cv_reader_over(sqlite3_column_blob(stmt, 4), (size_t)sqlite3_column_bytes(stmt, 4));
  return cv_cobroker_row_is_sealed(name->kind) ? CV_ERR_DAMAGED : cv_cobroker_restore(core, name, &row);
}

static enum cv_err take_sealed(struct cv_cobroker_store *store, struct cv_cobroker *core,
                               const struct cv_cobroker_name *name, sqlite3_stmt *stmt) {
  if (!cv_cobroker_row_is_sealed(name->kind)) {
    return CV_ERR_DAMAGED;
  }
  CV_TRY(unseal(store, name, sqlite3_column_blob(stmt, 4), (size_t)sqlite3_column_bytes(stmt, 4)));
  struct cv_reader row = cv_reader_over(store->scratch.data, store->scratch.len);
  return cv_cobroker_restore(core, name, &row);
}

typedef enum cv_err take_fn(struct cv_cobroker_store *store, struct cv_cobroker *core,
                            const struct cv_cobroker_name *name, sqlite3_stmt *stmt);

static enum cv_err each_row(struct cv_cobroker_store *store, struct cv_cobroker *core, const char *sql, take_fn *take,
                            struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(store->db, sql, &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, CV_COROW_JOURNAL);
  for (;;) {
    CV_TRY(cv_db_step(store->db, stmt, &row, why));
    if (row == 0) {
      return CV_OK;
    }
    const struct cv_cobroker_name name = {.campaign = (uint32_t)sqlite3_column_int64(stmt, 0),
                                          .kind = (uint32_t)sqlite3_column_int64(stmt, 1),
                                          .number = (uint64_t)sqlite3_column_int64(stmt, 2),
                                          .commit = (uint64_t)sqlite3_column_int64(stmt, 3)};
    enum cv_err err = take(store, core, &name, stmt);
    if (err != CV_OK) {
      (void)sqlite3_reset(stmt);
      bool is_ours = err == CV_ERR_NOMEM || err == CV_ERR_CRYPTO; /* not caused by the row */
      return cv_fail(why, is_ours ? err : CV_ERR_DAMAGED, "the co-broker's database: a %s of campaign %u: %s",
                     cv_cobroker_row_text(name.kind), name.campaign, cv_err_text(err));
    }
  }
}

enum cv_err cv_cobroker_store_load(struct cv_cobroker_store *store, struct cv_cobroker *core, uint64_t now_ms,
                                   uint64_t wall_ms, struct cv_why *why) {
  static const struct {
    const char *sql;
    take_fn *take;
  } steps[] = {
      {"SELECT campaign, kind, number, 0, image FROM clear_row WHERE kind <> ?1 ORDER BY campaign, kind, number",
       take_clear},
      {"SELECT campaign, kind, number, made, sealed FROM sealed_row WHERE kind <> ?1 ORDER BY campaign, kind, number",
       take_sealed},
      {"SELECT campaign, kind, number, made, sealed FROM sealed_row WHERE kind = ?1 ORDER BY number, campaign",
       take_sealed},
  };
  for (size_t i = 0; i < CV_COUNT(steps); i++) {
    CV_TRY(each_row(store, core, steps[i].sql, steps[i].take, why));
  }
  enum cv_err err = cv_cobroker_restore_end(core, store->mark.commit, &store->mark.totals, now_ms, wall_ms);
  return err == CV_OK
             ? err
             : cv_fail(why, err, "the co-broker's database: its rows contradict each other: %s", cv_err_text(err));
}
