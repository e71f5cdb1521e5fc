/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/vault.h"

#include <stdlib.h>
#include <string.h>

#include "broker/both/ids.h"
#include "common/base/rng.h"
#include "common/base/table.h"
#include "common/db/db_hook.h"

const char CV_VAULT_STEP[] =
    "CREATE TABLE wrapped_key (campaign INTEGER NOT NULL, use INTEGER NOT NULL, master BLOB NOT NULL,"
    "  wrapped BLOB NOT NULL, PRIMARY KEY (campaign, use));";
const char CV_VAULT_STAND_IN[] =
    "CREATE TEMP TABLE wrapped_key (campaign INTEGER, use INTEGER, master BLOB, wrapped BLOB)";

enum { WRAPPED_BYTES = CV_KEY_BYTES + CV_SEAL_OVERHEAD };

/* A campaign's sealing context, kept while the campaign runs. */
struct seal_entry {
  uint32_t campaign;
  struct cv_seal *seal;
  UT_hash_handle hh;
};

struct cv_vault {
  struct cv_ring ring;
  struct cv_db *db;
  uint8_t database[CV_DATABASE_ID_BYTES];
  uint64_t recoveries;
  bool is_empty;
  struct seal_entry *seals;
};

static void seal_entry_free(struct seal_entry *entry) {
  cv_seal_free(entry->seal);
  free(entry);
}

enum cv_err cv_vault_new(const struct cv_ring *ring, struct cv_vault **ret) {
  struct cv_vault *vault = calloc(1, sizeof(*vault));
  if (vault == NULL) {
    return CV_ERR_NOMEM;
  }
  if (cv_ring_copy(ring, ring->n, &vault->ring) != CV_OK) {
    free(vault);
    return CV_ERR_NOMEM;
  }
  *ret = vault;
  return CV_OK;
}

void cv_vault_free(struct cv_vault *vault) {
  if (vault == NULL) {
    return;
  }
  CV_TABLE_DRAIN(vault->seals, seal_entry_free);
  cv_ring_fini(&vault->ring);
  free(vault);
}

bool cv_vault_is_empty(const struct cv_vault *vault) {
  return vault->is_empty;
}

struct cv_key_id cv_vault_current(const struct cv_vault *vault) {
  return cv_key_id(vault->ring.item[0].key);
}

/* ---- wrapping ---- */

/* Where a key belongs. */
struct place {
  uint32_t campaign, use;
};

/* What a wrapped key is bound to: moved to another row, or under another master key, it does not open. */
struct bound {
  uint8_t bytes[CV_DATABASE_ID_BYTES + 4 + 4 + CV_KEY_ID_BYTES];
};

static struct bound bind_to(const struct cv_vault *vault, struct place place, const struct cv_key_id *master) {
  struct bound bound;
  struct cv_buf out = {.data = bound.bytes, .cap = sizeof(bound.bytes)};
  cv_buf_put(&out, vault->database, sizeof(vault->database));
  cv_buf_put_u32(&out, place.campaign);
  cv_buf_put_u32(&out, place.use);
  cv_buf_put(&out, master->bytes, sizeof(master->bytes));
  return bound;
}

/* The context that wraps and unwraps under a master key. */
static enum cv_err wrapper_of(const struct cv_key *master, struct cv_seal **ret) {
  struct cv_key key;
  CV_TRY(cv_key_derive(master, "crowdveil wrap", 0, &key));
  enum cv_err err = cv_seal_new(&key, ret);
  cv_key_wipe(&key);
  return err;
}

static enum cv_err wrap(const struct cv_vault *vault, struct place place, const struct cv_key *key,
                        const struct cv_key_id *master, uint8_t to[WRAPPED_BYTES]) {
  struct bound bound = bind_to(vault, place, master);
  struct cv_buf out = {.data = to, .cap = WRAPPED_BYTES};
  struct cv_seal *seal = NULL;
  CV_TRY(wrapper_of(vault->ring.item[0].key, &seal));
  enum cv_err err = cv_seal_close(seal, bound.bytes, sizeof(bound.bytes), key->bytes, sizeof(key->bytes), &out);
  cv_seal_free(seal);
  return err;
}

static enum cv_err unwrap(const struct cv_vault *vault, struct place place, const struct cv_key_id *id,
                          const struct cv_key *master, const void *wrapped, struct cv_key *ret) {
  struct bound bound = bind_to(vault, place, id);
  uint8_t bytes[CV_KEY_BYTES + 1]; /* cv_seal_open() reserves a byte more: the key never gets to the heap */
  struct cv_buf out = {.data = bytes, .cap = sizeof(bytes)};
  struct cv_seal *seal = NULL;
  CV_TRY(wrapper_of(master, &seal));
  enum cv_err err = cv_seal_open(seal, bound.bytes, sizeof(bound.bytes), wrapped, WRAPPED_BYTES, &out);
  cv_seal_free(seal);
  if (err == CV_OK) {
    memcpy(ret->bytes, bytes, sizeof(ret->bytes));
  }
  explicit_bzero(bytes, sizeof(bytes));
  return err;
}

static enum cv_err fail_own(enum cv_err err, struct cv_why *why) {
  return cv_fail(why, err, "the broker's database: cannot wrap a key: %s", cv_err_text(err));
}

/* ---- rows ---- */

/* Names both sides: the operator looks for the file that has the key. */
static enum cv_err fail_master(const struct cv_vault *vault, const struct cv_ring *ring, const struct cv_key_id *id,
                               struct cv_why *why) {
  return cv_fail(why, CV_ERR_DAMAGED,
                 "%s: its keys are wrapped by seal key %s; the file of seal_key has %s; expected that key in the file",
                 cv_db_path(vault->db), cv_key_name(id).text, cv_ring_names(ring).text);
}

/* Reads columns `master` and `wrapped` at `column` of a row. */
static enum cv_err take_row(const struct cv_vault *vault, struct place place, sqlite3_stmt *stmt, int column,
                            struct cv_key *ret, struct cv_why *why) {
  struct cv_key_id id;
  enum cv_err err = CV_ERR_DAMAGED;
  if (sqlite3_column_bytes(stmt, column) == (int)sizeof(id.bytes) &&
      sqlite3_column_bytes(stmt, column + 1) == WRAPPED_BYTES) {
    memcpy(id.bytes, sqlite3_column_blob(stmt, column), sizeof(id.bytes));
    const struct cv_key *master = cv_ring_find(&vault->ring, &id);
    if (master == NULL) {
      return fail_master(vault, &vault->ring, &id, why);
    }
    err = unwrap(vault, place, &id, master, sqlite3_column_blob(stmt, column + 1), ret);
  }
  return err == CV_ERR_DAMAGED
             ? cv_fail(why, err, "%s: table wrapped_key, campaign %u, use %u: not as it was stored; expected a key",
                       cv_db_path(vault->db), place.campaign, place.use)
         : err == CV_OK ? err
                        : fail_own(err, why);
}

static enum cv_err put(struct cv_vault *vault, struct place place, const struct cv_key *key, struct cv_why *why) {
  struct cv_key_id master = cv_vault_current(vault);
  uint8_t wrapped[WRAPPED_BYTES];
  sqlite3_stmt *stmt;
  enum cv_err err = wrap(vault, place, key, &master, wrapped);
  if (err != CV_OK) {
    return fail_own(err, why);
  }
  CV_TRY(cv_db_prepare(vault->db,
                       "INSERT INTO wrapped_key VALUES (?1, ?2, ?3, ?4)"
                       " ON CONFLICT DO UPDATE SET master = excluded.master, wrapped = excluded.wrapped",
                       &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, place.campaign);
  (void)sqlite3_bind_int64(stmt, 2, place.use);
  (void)sqlite3_bind_blob(stmt, 3, master.bytes, sizeof(master.bytes), SQLITE_STATIC);
  (void)sqlite3_bind_blob(stmt, 4, wrapped, sizeof(wrapped), SQLITE_STATIC);
  CV_TRY(cv_db_run(vault->db, stmt, why));
  vault->is_empty = false;
  return CV_OK;
}

/* Each master key that wraps stored keys must be in the ring. */
static enum cv_err check_masters(const struct cv_vault *vault, const struct cv_ring *ring, bool *ret_is_empty,
                                 struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  *ret_is_empty = true;
  CV_TRY(cv_db_prepare(vault->db, "SELECT DISTINCT master FROM wrapped_key", &stmt, why));
  for (;;) {
    struct cv_key_id id;
    CV_TRY(cv_db_step(vault->db, stmt, &row, why));
    if (row == 0) {
      return CV_OK;
    }
    *ret_is_empty = false;
    if (sqlite3_column_bytes(stmt, 0) == (int)sizeof(id.bytes)) { /* else the row's codes tell */
      memcpy(id.bytes, sqlite3_column_blob(stmt, 0), sizeof(id.bytes));
      if (cv_ring_find(ring, &id) == NULL) {
        (void)sqlite3_reset(stmt);
        return fail_master(vault, ring, &id, why);
      }
    }
  }
}

/* ---- keys of earlier versions ---- */

static uint64_t own_number(const struct cv_vault *vault) {
  struct cv_reader id = cv_reader_over(vault->database, sizeof(vault->database));
  return cv_read_u64(&id);
}

/* As versions up to 0.2.0 derived it. Such a database is older than any rotation, so its key is the ring's oldest. */
static enum cv_err derive(const struct cv_vault *vault, struct place place, struct cv_key *ret) {
  const struct cv_key *master = vault->ring.item[vault->ring.n - 1].key;
  switch ((enum cv_vault_use)place.use) {
    case CV_VAULT_ROWS:
      return cv_key_derive(master, "crowdveil rows", own_number(vault), ret);
    case CV_VAULT_TICKETS:
      return cv_key_derive(master, "crowdveil tickets", cv_mix64(own_number(vault) + vault->recoveries), ret);
    case CV_VAULT_SEAL:
    default:
      return cv_key_derive(master, "crowdveil campaign", place.campaign, ret);
  }
}

static enum cv_err adopt_one(struct cv_vault *vault, struct place place, struct cv_why *why) {
  struct cv_key key;
  enum cv_err err = derive(vault, place, &key);
  if (err != CV_OK) {
    return fail_own(err, why);
  }
  err = put(vault, place, &key, why);
  cv_key_wipe(&key);
  return err;
}

static const struct place own_keys[] = {{0, CV_VAULT_SEAL}, {0, CV_VAULT_ROWS}, {0, CV_VAULT_TICKETS}};

enum cv_err cv_vault_adopt(struct cv_vault *vault, struct cv_why *why) {
  static const char sql[] =
      "SELECT id FROM (SELECT id FROM campaign WHERE id NOT IN (SELECT campaign FROM ended)"
      " UNION SELECT campaign FROM journal UNION SELECT campaign FROM chunk)"
      " WHERE id > ? LIMIT 1";
  uint32_t id = 0;
  for (size_t i = 0; i < CV_COUNT(own_keys); i++) {
    CV_TRY(adopt_one(vault, own_keys[i], why));
  }
  for (;;) {
    CV_TRY(cv_ids_next(vault->db, sql, id, &id, why));
    if (id == 0) {
      return CV_OK;
    }
    CV_TRY(adopt_one(vault, (struct place){id, CV_VAULT_SEAL}, why));
  }
}

/* ---- changes ---- */

enum cv_err cv_vault_open(struct cv_vault *vault, struct cv_db *db, const uint8_t database[CV_DATABASE_ID_BYTES],
                          uint64_t recoveries, struct cv_why *why) {
  vault->db = db;
  vault->recoveries = recoveries;
  memcpy(vault->database, database, CV_DATABASE_ID_BYTES);
  return check_masters(vault, &vault->ring, &vault->is_empty, why);
}

enum cv_err cv_vault_begin(struct cv_vault *vault, struct cv_why *why) {
  for (size_t i = 0; i < CV_COUNT(own_keys); i++) {
    CV_TRY(cv_vault_renew(vault, own_keys[i].campaign, (enum cv_vault_use)own_keys[i].use, why));
  }
  return CV_OK;
}

enum cv_err cv_vault_renew(struct cv_vault *vault, uint32_t campaign, enum cv_vault_use use, struct cv_why *why) {
  struct cv_key key;
  enum cv_err err = cv_key_random(&key);
  if (err != CV_OK) {
    return fail_own(err, why);
  }
  err = put(vault, (struct place){campaign, use}, &key, why);
  cv_key_wipe(&key);
  return err;
}

static void forget_seal(struct cv_vault *vault, uint32_t campaign) {
  struct seal_entry *entry;
  HASH_FIND(hh, vault->seals, &campaign, sizeof(campaign), entry);
  if (entry != NULL) {
    HASH_DEL(vault->seals, entry);
    seal_entry_free(entry);
  }
}

enum cv_err cv_vault_drop(struct cv_vault *vault, uint32_t campaign, struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(vault->db, "DELETE FROM wrapped_key WHERE campaign = ?", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, campaign);
  forget_seal(vault, campaign);
  return cv_db_run(vault->db, stmt, why);
}

/* Takes one key that another master key wraps; *ret_found is false if there is none left. */
static enum cv_err take_other(struct cv_vault *vault, const struct cv_key_id *current, struct place *ret,
                              struct cv_key *ret_key, bool *ret_found, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(vault->db, "SELECT campaign, use, master, wrapped FROM wrapped_key WHERE master <> ? LIMIT 1",
                       &stmt, why));
  (void)sqlite3_bind_blob(stmt, 1, current->bytes, sizeof(current->bytes), SQLITE_STATIC);
  CV_TRY(cv_db_step(vault->db, stmt, &row, why));
  *ret_found = row != 0;
  if (row == 0) {
    return CV_OK;
  }
  *ret = (struct place){(uint32_t)sqlite3_column_int64(stmt, 0), (uint32_t)sqlite3_column_int64(stmt, 1)};
  enum cv_err err = take_row(vault, *ret, stmt, 2, ret_key, why);
  (void)sqlite3_reset(stmt);
  return err;
}

enum cv_err cv_vault_rewrap(struct cv_vault *vault, struct cv_why *why) {
  struct cv_key_id current = cv_vault_current(vault);
  for (;;) {
    struct place place;
    struct cv_key key;
    bool found;
    CV_TRY(take_other(vault, &current, &place, &key, &found, why));
    if (!found) {
      return CV_OK;
    }
    enum cv_err err = put(vault, place, &key, why);
    cv_key_wipe(&key);
    CV_TRY(err);
  }
}

enum cv_err cv_vault_trust(struct cv_vault *vault, const struct cv_ring *ring, struct cv_why *why) {
  struct cv_ring copy;
  bool is_empty;
  CV_TRY(check_masters(vault, ring, &is_empty, why));
  if (cv_ring_copy(ring, ring->n, &copy) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  cv_ring_fini(&vault->ring);
  vault->ring = copy;
  return CV_OK;
}

void cv_vault_distrust(struct cv_vault *vault) {
  cv_ring_cut(&vault->ring, 1);
}

/* ---- reading ---- */

enum cv_err cv_vault_key(struct cv_vault *vault, uint32_t campaign, enum cv_vault_use use, struct cv_key *ret,
                         struct cv_why *why) {
  const struct place place = {campaign, use};
  sqlite3_stmt *stmt;
  int row;
  if (vault->is_empty) {
    enum cv_err err = derive(vault, place, ret);
    return err == CV_OK ? err : fail_own(err, why);
  }
  CV_TRY(
      cv_db_prepare(vault->db, "SELECT master, wrapped FROM wrapped_key WHERE campaign = ? AND use = ?", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, campaign);
  (void)sqlite3_bind_int64(stmt, 2, use);
  CV_TRY(cv_db_step(vault->db, stmt, &row, why));
  if (row == 0) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: table wrapped_key: no key of campaign %u, use %u", cv_db_path(vault->db),
                   campaign, (unsigned)use);
  }
  enum cv_err err = take_row(vault, place, stmt, 0, ret, why);
  (void)sqlite3_reset(stmt);
  return err;
}

static enum cv_err make_seal(struct cv_vault *vault, uint32_t campaign, struct cv_seal **ret, struct cv_why *why) {
  struct cv_key key;
  CV_TRY(cv_vault_key(vault, campaign, CV_VAULT_SEAL, &key, why));
  enum cv_err err = cv_seal_new(&key, ret);
  cv_key_wipe(&key);
  return err == CV_OK ? err : fail_own(err, why);
}

enum cv_err cv_vault_seal(struct cv_vault *vault, uint32_t campaign, struct cv_seal **ret, struct cv_why *why) {
  struct seal_entry *entry;
  HASH_FIND(hh, vault->seals, &campaign, sizeof(campaign), entry);
  if (entry == NULL) {
    struct cv_seal *seal;
    CV_TRY(make_seal(vault, campaign, &seal, why));
    entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
      cv_seal_free(seal);
      return fail_own(CV_ERR_NOMEM, why);
    }
    *entry = (struct seal_entry){.campaign = campaign, .seal = seal};
    if (CV_TABLE_ADD(vault->seals, campaign, entry) != CV_OK) {
      seal_entry_free(entry);
      return fail_own(CV_ERR_NOMEM, why);
    }
  }
  *ret = entry->seal;
  return CV_OK;
}

enum cv_err cv_vault_count(struct cv_vault *vault, struct cv_vault_count *ret, struct cv_why *why) {
  struct cv_key_id current = cv_vault_current(vault);
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(vault->db, "SELECT count(*), count(*) FILTER (WHERE master = ?) FROM wrapped_key", &stmt, why));
  (void)sqlite3_bind_blob(stmt, 1, current.bytes, sizeof(current.bytes), SQLITE_STATIC);
  CV_TRY(cv_db_step(vault->db, stmt, &row, why));
  *ret = (struct cv_vault_count){.keys = 0};
  if (row != 0) {
    *ret = (struct cv_vault_count){.keys = (uint64_t)sqlite3_column_int64(stmt, 0),
                                   .current = (uint64_t)sqlite3_column_int64(stmt, 1)};
    (void)sqlite3_reset(stmt);
  }
  return CV_OK;
}

/* ---- with a transaction ---- */

enum cv_err cv_vault_keep(struct cv_vault *vault, struct cv_why *why) {
  bool is_empty = cv_vault_is_empty(vault);
  struct cv_vault_count count = {.keys = 0};
  CV_TRY(cv_vault_count(vault, &count, why));
  if (!is_empty && count.current == count.keys) {
    return CV_OK;
  }
  CV_TRY(cv_db_begin(vault->db, why));
  enum cv_err err = is_empty ? cv_vault_adopt(vault, why) : cv_vault_rewrap(vault, why);
  err = err == CV_OK ? cv_db_commit(vault->db, why) : err;
  if (err != CV_OK) {
    cv_db_rollback(vault->db);
    return err;
  }
  /* The old wrapped keys are in the log and may be in pages that are not yet overwritten. */
  return cv_db_exec(vault->db, "PRAGMA wal_checkpoint(TRUNCATE)", why);
}

enum cv_err cv_vault_rekey(struct cv_vault *vault, const struct cv_ring *ring, struct cv_why *why) {
  CV_TRY(cv_vault_trust(vault, ring, why));
  CV_TRY(cv_vault_keep(vault, why));
  cv_vault_distrust(vault);
  return CV_OK;
}
