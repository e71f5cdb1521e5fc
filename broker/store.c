/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/both/ids.h"
#include "broker/both/meta.h"
#include "broker/fetch.h"
#include "broker/proof.h"
#include "broker/recover.h"
#include "broker/restore.h"
#include "common/db/db.h"

/* No table changes: chunks and journal rows say where places are in another way, which earlier versions cannot read. */
#define CV_ROUNDS_STEP "SELECT 1;"
/* The same for chunks of campaigns with two brokers (two.h), and rows with their terms. */
#define CV_TWO_STEP "SELECT 1;"

static const char *const schema_steps[] = {
    CV_META_TABLE
    "CREATE TABLE campaign (id INTEGER PRIMARY KEY, image BLOB NOT NULL, state BLOB, standings BLOB);"
    "CREATE TABLE plan (campaign INTEGER NOT NULL, number INTEGER NOT NULL, image BLOB NOT NULL,"
    "  PRIMARY KEY (campaign, number)) WITHOUT ROWID;"
    "CREATE TABLE release (campaign INTEGER NOT NULL, number INTEGER NOT NULL, image BLOB NOT NULL,"
    "  PRIMARY KEY (campaign, number)) WITHOUT ROWID;"
    "CREATE TABLE ledger (campaign INTEGER NOT NULL, arm INTEGER NOT NULL, image BLOB NOT NULL,"
    "  PRIMARY KEY (campaign, arm)) WITHOUT ROWID;"
    "CREATE TABLE recovery (number INTEGER PRIMARY KEY, image BLOB NOT NULL);"
    "CREATE TABLE journal (id INTEGER PRIMARY KEY, made INTEGER NOT NULL, campaign INTEGER NOT NULL,"
    "  sealed BLOB NOT NULL);"
    "CREATE TABLE chunk (campaign INTEGER NOT NULL, kind INTEGER NOT NULL, number INTEGER NOT NULL,"
    "  made INTEGER NOT NULL, sealed BLOB NOT NULL, PRIMARY KEY (campaign, kind, number));",
    CV_BROKER_PROOF_STEP,
    CV_VAULT_STEP,
    CV_ROUNDS_STEP,
    CV_TWO_STEP,
};
/* Versions of the schema: the first with codes of the rows, with records of ended campaigns, with keys. */
enum { WITH_CODES = 2, WITH_RECORDS = 2, WITH_KEYS = 3 };

static const struct cv_db_schema schema = {
    .application_id = 0x43564252, /* "CVBR" */
    .steps = schema_steps,
    .count = (int)CV_COUNT(schema_steps),
    .oldest = 1,
};

struct cv_broker_store {
  struct cv_db *db;
  struct cv_mac *mac; /* computes the rows' codes */
  struct cv_anchor *anchor;
  /* The database's own mark after its last commit; then both marks as found when the store was opened. */
  struct cv_anchor_mark mark;
  struct cv_store_marks found;
  struct cv_vault *vault;
  struct cv_buf scratch;
};

struct cv_db *cv_broker_store_database(const struct cv_broker_store *store) {
  return store->db;
}

const uint8_t *cv_broker_store_id(const struct cv_broker_store *store) {
  return store->mark.database;
}

bool cv_broker_store_exists(const char *database) {
  struct stat info;
  return stat(database, &info) == 0;
}

/* ---- sealing ---- */

/* The context that a sealed value is bound to: a value moved to another row does not open. */
struct bound {
  uint8_t bytes[CV_DATABASE_ID_BYTES + 4 + 4 + 8 + 8];
};

/* Little-endian and of fixed length, so that different contexts never have equal bytes. */
static struct bound bind_to(const struct cv_broker_store *store, uint32_t campaign, uint32_t kind, uint64_t number,
                            uint64_t commit) {
  struct bound bound;
  uint8_t *at = bound.bytes;
  memcpy(at, store->mark.database, CV_DATABASE_ID_BYTES);
  at += CV_DATABASE_ID_BYTES;
  const uint64_t fields[] = {campaign | (uint64_t)kind << 32, number, commit};
  for (size_t i = 0; i < CV_COUNT(fields); i++) {
    for (int j = 0; j < 8; j++) {
      *at++ = (uint8_t)(fields[i] >> (8 * j));
    }
  }
  return bound;
}

/* Seals an operation's bytes into the scratch buffer, under the commit that writes it: an older value of the same row
 * does not open either. */
static enum cv_err seal(struct cv_broker_store *store, const struct cv_op *op, uint64_t commit, const uint8_t *bytes,
                        struct cv_why *why) {
  struct cv_seal *context;
  struct bound bound = bind_to(store, op->campaign, op->chunk, op->number, commit);
  CV_TRY(cv_vault_seal(store->vault, op->campaign, &context, why));
  cv_buf_clear(&store->scratch);
  enum cv_err err = cv_seal_close(context, bound.bytes, sizeof(bound.bytes), bytes, op->n, &store->scratch);
  return err == CV_OK ? err
                      : cv_fail(why, err, "the broker's database: cannot seal for campaign %u: %s", op->campaign,
                                cv_err_text(err));
}

/* Opens a sealed column into the scratch buffer; the context must be that of the commit that wrote the row. */
static enum cv_err unseal(struct cv_broker_store *store, uint32_t campaign, uint32_t kind, uint64_t number,
                          uint64_t commit, sqlite3_stmt *stmt, int column) {
  struct cv_seal *context;
  struct bound bound = bind_to(store, campaign, kind, number, commit);
  cv_buf_clear(&store->scratch);
  CV_TRY(cv_vault_seal(store->vault, campaign, &context, NULL));
  return cv_seal_open(context, bound.bytes, sizeof(bound.bytes), sqlite3_column_blob(stmt, column),
                      (size_t)sqlite3_column_bytes(stmt, column), &store->scratch);
}

/* ---- opening ---- */

/* Ends a transaction: commits if `err` is CV_OK. */
static enum cv_err end(struct cv_broker_store *store, enum cv_err err, struct cv_why *why) {
  err = err == CV_OK ? cv_db_commit(store->db, why) : err;
  if (err != CV_OK) {
    cv_db_rollback(store->db);
  }
  return err;
}

/* A new database's identity and keys. The codes of these rows come after: a start that stops in between leaves rows
 * without codes and no anchor, and the next one adds the codes. */
static enum cv_err write_new(struct cv_broker_store *store, struct cv_why *why) {
  CV_TRY(cv_meta_new("broker", &store->mark, why)); /* it starts again at campaign 1 */
  CV_TRY(cv_vault_open(store->vault, store->db, store->mark.database, 0, why));
  CV_TRY(cv_db_begin(store->db, why));
  enum cv_err err = cv_meta_insert(store->db, &store->mark, why);
  err = err == CV_OK ? cv_vault_begin(store->vault, why) : err;
  return end(store, err, why);
}

/*
 * Checks every row against its code. Rows without codes are accepted only if the database never had any: the anchor,
 * which is outside the state folder, records that it has codes, so they cannot be removed.
 */
static enum cv_err prove(struct cv_broker_store *store, const struct cv_store_files *files, bool has_codes, bool found,
                         struct cv_why *why) {
  enum cv_proof proof = CV_PROOF_NONE;
  struct cv_key key;
  bool is_new = !cv_vault_is_empty(store->vault); /* databases of before have no stored keys */
  CV_TRY(cv_vault_key(store->vault, 0, CV_VAULT_ROWS, &key, why));
  enum cv_err err = cv_broker_proof_begin(store->db, &key, !has_codes || !found, is_new, &store->mac, &proof, why);
  cv_key_wipe(&key);
  if (err == CV_ERR_DAMAGED && !files->readonly) {
    struct cv_why reason = *why;
    return cv_fail(why, err, "%.400s; check seal_key first; if it is right, restore a copy and run crowdveil recover",
                   reason.text);
  }
  CV_TRY(err);
  store->mark.has_codes = proof != CV_PROOF_NONE;
  return files->readonly ? CV_OK : cv_vault_keep(store->vault, why);
}

/* Whether the key fits a database whose keys were derived from it: rows of version 0.1.0 have no codes that would tell,
 * and must not get codes under a key that opens none of them. */
static enum cv_err check_derived(struct cv_broker_store *store, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(store->db, "SELECT campaign, made, sealed FROM journal LIMIT 1", &stmt, why));
  CV_TRY(cv_db_step(store->db, stmt, &row, why));
  if (row == 0) {
    return CV_OK;
  }
  uint64_t commit = (uint64_t)sqlite3_column_int64(stmt, 1);
  enum cv_err err = unseal(store, (uint32_t)sqlite3_column_int64(stmt, 0), 0, commit, commit, stmt, 2);
  (void)sqlite3_reset(stmt);
  return err == CV_ERR_DAMAGED
             ? cv_fail(why, err,
                       "the broker's database: a journal row does not open; check seal_key first; if it is "
                       "right, restore a copy and run crowdveil recover")
         : err == CV_OK ? err
                        : cv_fail(why, err, "the broker's database: %s", cv_err_text(err));
}

/* Opens the keys of a database that was found. */
static enum cv_err open_keys(struct cv_broker_store *store, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(store->db, "SELECT count(*) FROM recovery", &stmt, why));
  CV_TRY(cv_db_step(store->db, stmt, &row, why));
  uint64_t recoveries = row == 0 ? 0 : (uint64_t)sqlite3_column_int64(stmt, 0);
  (void)sqlite3_reset(stmt);
  CV_TRY(cv_vault_open(store->vault, store->db, store->mark.database, recoveries, why));
  return cv_vault_is_empty(store->vault) ? check_derived(store, why) : CV_OK;
}

static enum cv_err open_for_repair(struct cv_broker_store *store, const struct cv_store_files *files, bool is_anchored,
                                   const struct cv_anchor_mark *anchor, bool found, struct cv_why *why) {
  CV_TRY(found ? open_keys(store, why) : write_new(store, why));
  CV_TRY(prove(store, files, is_anchored && anchor->has_codes, found, why));
  store->found = cv_meta_marks(&store->mark, found, anchor, is_anchored);
  return CV_OK;
}

/* A database of an earlier version that is opened read-only gets the tables that it lacks, empty and temporary. */
static enum cv_err stand_in(struct cv_broker_store *store, struct cv_why *why) {
  if (cv_db_version(store->db) < WITH_RECORDS) {
    CV_TRY(cv_db_exec(store->db, "CREATE TEMP TABLE ended (campaign INTEGER, image BLOB)", why));
  }
  return cv_db_version(store->db) < WITH_KEYS ? cv_db_exec(store->db, CV_VAULT_STAND_IN, why) : CV_OK;
}

/* For examining: neither creates nor changes a file. */
static enum cv_err open_readonly(struct cv_broker_store *store, const struct cv_store_files *files,
                                 struct cv_why *why) {
  struct cv_anchor_mark mark = {0};
  bool anchored = false, found = false;
  CV_TRY(cv_anchor_peek(files->anchor, &anchored, &mark, why));
  /* A database with an anchor that has codes must have them: an older schema would be a downgrade. */
  struct cv_db_schema known = schema;
  known.known = mark.has_codes ? WITH_CODES : 0;
  CV_TRY(cv_db_open_readonly(files->database, &known, &store->db, why));
  CV_TRY(stand_in(store, why));
  CV_TRY(cv_meta_read(store->db, "broker", &store->mark, &found, why));
  if (!found) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s is empty", files->database);
  }
  return open_for_repair(store, files, anchored, &mark, true, why);
}

/* For running and for repair: opens or creates both files. */
static enum cv_err open_both(struct cv_broker_store *store, const struct cv_store_files *files, struct cv_why *why) {
  struct cv_anchor_mark mark = {0};
  bool anchored = false, found = false;
  /* The anchor is peeked at first, because its mark decides which schema is acceptable; only then is it created. */
  CV_TRY(cv_anchor_peek(files->anchor, &anchored, &mark, why));
  struct cv_db_schema known = schema;
  known.known = mark.has_codes ? WITH_CODES : 0;
  CV_TRY(cv_db_open(files->database, files->vfs, &known, &store->db, why));
  CV_TRY(cv_meta_read(store->db, "broker", &store->mark, &found, why));
  CV_TRY(cv_anchor_open(files->anchor, &store->anchor, &anchored, &mark, why));
  if (files->repair) {
    return open_for_repair(store, files, anchored, &mark, found, why);
  }
  /* First the order of commits, then the codes: an older copy gets the error that names both commits. */
  const struct cv_store_marks marks = cv_meta_marks(&store->mark, found, &mark, anchored);
  CV_TRY(cv_meta_check(&marks, found, files, why));
  CV_TRY(found ? open_keys(store, why) : write_new(store, why));
  CV_TRY(prove(store, files, mark.has_codes, found, why));
  /* A crash between commit and anchor leaves the anchor one commit behind. It catches up here, before this run sends
   * anything; a new database gets its first mark. */
  return cv_anchor_write(store->anchor, &store->mark, why);
}

enum cv_err cv_broker_store_open(const struct cv_store_files *files, const struct cv_ring *ring,
                                 struct cv_broker_store **ret, struct cv_why *why) {
  struct cv_broker_store *store = calloc(1, sizeof(*store));
  if (store == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  if (cv_vault_new(ring, &store->vault) != CV_OK) {
    cv_broker_store_close(store);
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  enum cv_err err = files->readonly ? open_readonly(store, files, why) : open_both(store, files, why);
  if (err != CV_OK) {
    cv_broker_store_close(store);
    return err;
  }
  *ret = store;
  return CV_OK;
}

enum cv_err cv_broker_store_tickets(struct cv_broker_store *store, struct cv_key *ret, struct cv_why *why) {
  return cv_vault_key(store->vault, 0, CV_VAULT_TICKETS, ret, why);
}

struct cv_vault *cv_broker_store_vault(struct cv_broker_store *store) {
  return store->vault;
}

void cv_broker_store_close(struct cv_broker_store *store) {
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

/* ---- committing ---- */

/*
 * Parameters of all statements: campaign, number, bytes, chunk kind, commit.
 *
 * Plans, releases and recoveries are only inserted: writing one a second time violates the primary key and fails the
 * commit, so that a stored release can never be replaced by another draw of its noise. Journal and chunks carry no code
 * of their own, because the tag of a sealed value enters the sums of codes (common/db/proof.h).
 */
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

static bool is_sealed(enum cv_op_kind kind) {
  return kind == CV_OP_JOURNAL || kind == CV_OP_CHUNK;
}

static enum cv_err delete_rows(struct cv_broker_store *store, const char *sql, uint32_t campaign, uint64_t number,
                               struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(store->db, sql, &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, campaign);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)number);
  return cv_db_run(store->db, stmt, why);
}

/* Deletes a campaign's secrets. The transaction of the purge also stores what has to outlive them: the charges to
 * workers, which only journal rows held until then (see fold() in image.c). */
static enum cv_err purge(struct cv_broker_store *store, uint32_t campaign, struct cv_why *why) {
  CV_TRY(delete_rows(store, "DELETE FROM journal WHERE campaign = ?1", campaign, 0, why));
  CV_TRY(delete_rows(store, "DELETE FROM chunk WHERE campaign = ?1", campaign, 0, why));
  /* What remains of its rows elsewhere, in the log or in copies of the files, opens no more without the key. */
  return cv_vault_drop(store->vault, campaign, why);
}

/* The ledger's accounts are those of the campaign's arms; the workers' accounts are chunks without a campaign. */
static enum cv_err drop(struct cv_broker_store *store, uint32_t campaign, uint64_t upto, struct cv_why *why) {
  CV_TRY(delete_rows(store, "DELETE FROM plan WHERE campaign = ?1 AND number <= ?2", campaign, upto, why));
  CV_TRY(delete_rows(store, "DELETE FROM release WHERE campaign = ?1 AND number <= ?2", campaign, upto, why));
  if (upto != CV_DROP_ALL) {
    return CV_OK;
  }
  CV_TRY(cv_vault_drop(store->vault, campaign, why));
  /* The description goes last: until then a restart continues the deletion from the record. */
  CV_TRY(delete_rows(store, "DELETE FROM ledger WHERE campaign = ?1", campaign, 0, why));
  return delete_rows(store, "DELETE FROM campaign WHERE id = ?1", campaign, 0, why);
}

/* Writes the operation's row. */
static enum cv_err write_row(struct cv_broker_store *store, const struct cv_broker_batch *batch, const struct cv_op *op,
                             struct cv_why *why) {
  const uint8_t *bytes = batch->bytes.data + op->at;
  size_t n = op->n;
  if (is_sealed(op->kind)) {
    CV_TRY(seal(store, op, batch->commit, bytes, why));
    bytes = store->scratch.data;
    n = store->scratch.len;
  }
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(store->db, sql_of(op->kind), &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, op->campaign);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)op->number);
  /* SQLite binds a null pointer as NULL, which the columns refuse; an operation without bytes stores an empty blob. */
  (void)sqlite3_bind_blob(stmt, 3, n > 0 ? (const void *)bytes : "", (int)n, SQLITE_STATIC);
  (void)sqlite3_bind_int64(stmt, 4, op->chunk);
  (void)sqlite3_bind_int64(stmt, 5, (sqlite3_int64)batch->commit);
  return cv_db_run(store->db, stmt, why);
}

/* Writes one operation of the batch, with the key that belongs to it. */
static enum cv_err apply(struct cv_broker_store *store, const struct cv_broker_batch *batch, const struct cv_op *op,
                         struct cv_why *why) {
  switch (op->kind) {
    case CV_OP_PURGE:
      return purge(store, op->campaign, why);
    case CV_OP_DROP:
      return drop(store, op->campaign, op->number, why);
    case CV_OP_CAMPAIGN:
      CV_TRY(cv_vault_renew(store->vault, op->campaign, CV_VAULT_SEAL, why));
      return write_row(store, batch, op, why);
    case CV_OP_RECOVERY: /* tickets of the lost time become void */
      CV_TRY(cv_vault_renew(store->vault, 0, CV_VAULT_TICKETS, why));
      return write_row(store, batch, op, why);
    default:
      return write_row(store, batch, op, why);
  }
}

/* The hash chain over commits covers every operation, sealed or not. It is never computed from stored rows: each hash
 * is stored with its commit and compared with the anchor's copy, so host byte order does no harm. */
static struct cv_digest chain(const struct cv_digest *before, const struct cv_broker_batch *batch) {
  struct cv_digest hash;
  cv_sha256(before->bytes, sizeof(before->bytes), batch->bytes.data, batch->bytes.len, &hash);
  for (size_t i = 0; i < batch->ops; i++) {
    const struct cv_op *op = &batch->op[i];
    const uint64_t head[] = {batch->commit, op->kind, op->chunk, op->campaign, op->number, op->n};
    struct cv_digest next;
    cv_sha256(hash.bytes, sizeof(hash.bytes), head, sizeof(head), &next);
    hash = next;
  }
  return hash;
}

static enum cv_err transact(struct cv_broker_store *store, const struct cv_broker_batch *batch,
                            const struct cv_anchor_mark *mark, struct cv_why *why) {
  /* Operations first, then meta: the transaction stores both or neither. */
  for (size_t i = 0; i < batch->ops; i++) {
    CV_TRY(apply(store, batch, &batch->op[i], why));
  }
  CV_TRY(cv_meta_update(store->db, mark, why));
  return cv_db_commit(store->db, why);
}

enum cv_err cv_broker_store_commit(struct cv_broker_store *store, const struct cv_broker_batch *batch,
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

void cv_broker_store_marks(const struct cv_broker_store *store, struct cv_store_marks *ret) {
  *ret = store->found;
}

void cv_broker_store_leap(struct cv_broker_store *store, uint64_t commit) {
  CV_REQUIRE(commit > store->mark.commit);
  store->mark.commit = commit - 1;
}

enum cv_err cv_broker_store_anchor(struct cv_broker_store *store, struct cv_why *why) {
  return cv_anchor_write(store->anchor, &store->mark, why);
}

/* ---- loading ---- */

typedef enum cv_err restore_fn(struct cv_broker *broker, uint32_t campaign, struct cv_reader *image);
typedef enum cv_err sealed_fn(struct cv_broker_store *store, struct cv_broker *broker, sqlite3_stmt *stmt);

/* One kind of row: `restore` for rows that are not sealed, `sealed` for those that are. */
struct load_step {
  const char *sql, *what;
  restore_fn *restore;
  sealed_fn *sealed;
};

/* A row that is not sealed: campaign, image. */
static enum cv_err take_image(struct cv_broker *broker, sqlite3_stmt *stmt, restore_fn *restore) {
  struct cv_reader image = cv_reader_over(sqlite3_column_blob(stmt, 1), (size_t)sqlite3_column_bytes(stmt, 1));
  return restore(broker, (uint32_t)sqlite3_column_int64(stmt, 0), &image);
}

static enum cv_err take_chunk(struct cv_broker_store *store, struct cv_broker *broker, sqlite3_stmt *stmt) {
  uint32_t campaign = (uint32_t)sqlite3_column_int64(stmt, 0);
  uint32_t kind = (uint32_t)sqlite3_column_int64(stmt, 1);
  uint64_t number = (uint64_t)sqlite3_column_int64(stmt, 2);
  uint64_t commit = (uint64_t)sqlite3_column_int64(stmt, 3);
  CV_TRY(unseal(store, campaign, kind, number, commit, stmt, 4));
  struct cv_reader bytes = cv_reader_over(store->scratch.data, store->scratch.len);
  return cv_broker_restore_chunk(broker, campaign, (enum cv_chunk_kind)kind, number, commit, &bytes);
}

static enum cv_err take_journal(struct cv_broker_store *store, struct cv_broker *broker, sqlite3_stmt *stmt) {
  uint32_t campaign = (uint32_t)sqlite3_column_int64(stmt, 0);
  uint64_t commit = (uint64_t)sqlite3_column_int64(stmt, 1);
  /* A journal row is numbered by its commit (fill_journal() in image.c). */
  CV_TRY(unseal(store, campaign, 0, commit, commit, stmt, 2));
  struct cv_reader bytes = cv_reader_over(store->scratch.data, store->scratch.len);
  return cv_broker_restore_journal(broker, campaign, commit, &bytes);
}

/* Restores each row of the statement, of campaign `id` if it has that parameter. */
static enum cv_err each_row(struct cv_broker_store *store, struct cv_broker *broker, const struct load_step *step,
                            uint32_t id, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(store->db, step->sql, &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  for (;;) {
    CV_TRY(cv_db_step(store->db, stmt, &row, why));
    if (row == 0) {
      return CV_OK;
    }
    long long campaign = sqlite3_column_int64(stmt, 0);
    enum cv_err err =
        step->restore != NULL ? take_image(broker, stmt, step->restore) : step->sealed(store, broker, stmt);
    if (err != CV_OK) {
      (void)sqlite3_reset(stmt);
      bool is_ours = err == CV_ERR_NOMEM || err == CV_ERR_CRYPTO; /* not caused by the row */
      return cv_fail(why, is_ours ? err : CV_ERR_DAMAGED, "the broker's database: a %s of campaign %lld: %s",
                     step->what, campaign, cv_err_text(err));
    }
  }
}

/* Restores all rows of one campaign except secrets, which an ended campaign does not have. */
static enum cv_err load_campaign(struct cv_broker_store *store, struct cv_broker *broker, uint32_t id,
                                 struct cv_why *why) {
  static const struct load_step steps[] = {
      {"SELECT id, image FROM campaign WHERE id = ?1", "description", cv_broker_restore_campaign, NULL},
      {"SELECT campaign, image FROM plan WHERE campaign = ?1 ORDER BY number", "plan", cv_broker_restore_plan, NULL},
      {"SELECT campaign, image FROM release WHERE campaign = ?1 ORDER BY number", "release", cv_broker_restore_release,
       NULL},
      {"SELECT campaign, image FROM ledger WHERE campaign = ?1 ORDER BY arm", "account", cv_broker_restore_ledger,
       NULL},
      {"SELECT id, standings FROM campaign WHERE id = ?1 AND standings IS NOT NULL", "table of standings",
       cv_broker_restore_standings, NULL},
      {"SELECT id, state FROM campaign WHERE id = ?1 AND state IS NOT NULL", "state", cv_broker_restore_state, NULL},
  };
  for (size_t i = 0; i < CV_COUNT(steps); i++) {
    /* The order is that of restore.h: later rows are checked against earlier ones. */
    CV_TRY(each_row(store, broker, &steps[i], id, why));
  }
  enum cv_err err = cv_broker_restore_whole(broker, id);
  return err == CV_OK ? err
                      : cv_fail(why, err, "the broker's database: rows of campaign %u contradict each other: %s", id,
                                cv_err_text(err));
}

enum cv_err cv_broker_store_fetch(struct cv_broker_store *store, struct cv_broker *broker, uint32_t id,
                                  struct cv_why *why) {
  /* The row may have changed since the start, when all codes were checked: check those of this campaign again. */
  CV_TRY(cv_proof_check(store->db, id, why));
  return load_campaign(store, broker, id, why);
}

enum cv_err cv_broker_store_serve(struct cv_broker_store *store, struct cv_broker *broker, struct cv_why *why) {
  uint32_t campaign;
  if (!cv_broker_wanted(broker, &campaign)) {
    return CV_OK;
  }
  enum cv_err err = cv_broker_store_fetch(store, broker, campaign, why);
  if (err == CV_ERR_DAMAGED) {
    cv_broker_fetch_failed(broker, campaign, why->text);
    return CV_OK;
  }
  return err;
}

/* Restores campaigns one after the other: those that are open, and those that an older program left without a record.
 * */
static enum cv_err load_campaigns(struct cv_broker_store *store, struct cv_broker *broker, struct cv_why *why) {
  static const char sql[] = "SELECT id FROM campaign WHERE id > ?1 AND id NOT IN (SELECT campaign FROM ended) LIMIT 1";
  for (uint32_t id = 0;;) {
    CV_TRY(cv_ids_next(store->db, sql, id, &id, why));
    if (id == 0) {
      return CV_OK;
    }
    CV_TRY(load_campaign(store, broker, id, why));
  }
}

enum cv_err cv_broker_store_load(struct cv_broker_store *store, struct cv_broker *broker, uint64_t now_ms,
                                 uint64_t wall_ms, struct cv_why *why) {
  static const struct load_step ended = {"SELECT campaign, image FROM ended ORDER BY campaign", "record",
                                         cv_broker_restore_ended, NULL};
  static const struct load_step steps[] = {
      {"SELECT number, image FROM recovery ORDER BY number", "recovery", cv_broker_restore_recovery, NULL},
      {"SELECT campaign, kind, number, made, sealed FROM chunk", "chunk", NULL, take_chunk},
      {"SELECT campaign, made, sealed FROM journal ORDER BY id", "journal row", NULL, take_journal},
  };
  /* Records first: they decide which campaigns are open. Chunks before the journal, which is replayed on top. */
  CV_TRY(each_row(store, broker, &ended, 0, why));
  CV_TRY(load_campaigns(store, broker, why));
  for (size_t i = 0; i < CV_COUNT(steps); i++) {
    CV_TRY(each_row(store, broker, &steps[i], 0, why));
  }
  enum cv_err err = cv_broker_restore_end(broker, store->mark.commit, &store->mark.totals, now_ms, wall_ms);
  return err == CV_OK
             ? err
             : cv_fail(why, err, "the broker's database: its rows contradict each other: %s", cv_err_text(err));
}
