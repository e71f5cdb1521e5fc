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

/* How many rows of an arm have left. */
struct taken {
  uint64_t print, campaign, rows;
  uint32_t arm;
  char name[CV_NAME_BYTES];
};

/* A question that a worker has answered, or that it may be asked again. */
struct answer {
  uint64_t campaign, worker, question;
  bool is_answered;
  struct cv_digest items;
  char name[CV_NAME_BYTES];
};

struct cv_worker_store {
  struct cv_db *db;
  uint64_t first, last;
  uint32_t *scores;
  bool *noted;     /* by worker: the worker is in `which` */
  uint32_t *which; /* workers with changed counts, as offsets from `first` */
  uint32_t count;
  uint8_t key[CV_COIN_KEY_BYTES];
  uint64_t print; /* the data set of `row` */
  uint32_t *row;  /* rows not stored yet */
  size_t rows, rows_cap;
  struct taken *taken; /* numbers not stored yet, in order */
  size_t takens, takens_cap;
  struct answer *answer; /* changes not stored yet, in order */
  size_t answers, answers_cap;
};

static const char *const steps[] = {
    "CREATE TABLE given (worker INTEGER PRIMARY KEY, scores INTEGER NOT NULL CHECK (scores BETWEEN 1 AND "
    "4294967295));" CV_PROOF_TABLE
    "CREATE TABLE secret (one INTEGER PRIMARY KEY CHECK (one = 1), key BLOB NOT NULL CHECK (length(key) = 32));"
    "CREATE TABLE data_set (path TEXT PRIMARY KEY, print INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE used_row (print INTEGER NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (print, row)) WITHOUT ROWID;"
    "CREATE TABLE served (print INTEGER NOT NULL, campaign INTEGER NOT NULL, name TEXT NOT NULL, "
    "law INTEGER NOT NULL, PRIMARY KEY (print, campaign, name, law)) WITHOUT ROWID;"
    "CREATE TABLE taken (print INTEGER NOT NULL, campaign INTEGER NOT NULL, name TEXT NOT NULL, arm INTEGER NOT NULL, "
    "rows INTEGER NOT NULL, PRIMARY KEY (print, campaign, name, arm)) WITHOUT ROWID;"
    "CREATE TABLE answered (campaign INTEGER NOT NULL, name TEXT NOT NULL, worker INTEGER NOT NULL, "
    "question INTEGER NOT NULL, PRIMARY KEY (campaign, name, worker, question)) WITHOUT ROWID;"
    "CREATE TABLE items (name TEXT PRIMARY KEY, digest BLOB NOT NULL CHECK (length(digest) = 32)) WITHOUT ROWID",
};

static const struct cv_db_schema schema = {
    .application_id = 0x43565747, /* "CVWG" */
    .steps = steps,
    .count = (int)CV_COUNT(steps),
    .first = 4,
    .advice =
        "move the files in its folder away; the next start makes new ones, counts given scores from 0 and "
        "randomizes each score anew",
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

/* Verifies the checksums: a damaged count, row or answer would let a worker give a score twice. */
static enum cv_err prove(struct cv_db *db, struct cv_why *why) {
  static const struct cv_proof_part part[] = {{.table = "given"},    {.table = "secret"}, {.table = "data_set"},
                                              {.table = "used_row"}, {.table = "served"}, {.table = "taken"},
                                              {.table = "answered"}, {.table = "items"}};
  const struct cv_proof_config config = {.part = part, .parts = CV_COUNT(part)};
  return cv_proof_begin(db, &config, why);
}

static enum cv_err in_transaction(struct cv_worker_store *store, enum cv_err err, struct cv_why *why) {
  err = err == CV_OK ? cv_db_commit(store->db, why) : err;
  if (err != CV_OK) {
    cv_db_rollback(store->db);
  }
  return err;
}

static enum cv_err add_key(struct cv_worker_store *store, const uint8_t *key, struct cv_rng *rng, struct cv_why *why) {
  sqlite3_stmt *stmt;
  for (size_t i = 0; i < sizeof(store->key); i++) {
    store->key[i] = key != NULL ? key[i] : (uint8_t)cv_rng_u64(rng);
  }
  CV_TRY(cv_db_prepare(store->db, "INSERT INTO secret (one, key) VALUES (1, ?1)", &stmt, why));
  (void)sqlite3_bind_blob(stmt, 1, store->key, sizeof(store->key), SQLITE_STATIC);
  return cv_db_run(store->db, stmt, why);
}

/* Stored before anything depends on it. */
static enum cv_err load_key(struct cv_worker_store *store, const uint8_t *key, struct cv_rng *rng, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(store->db, "SELECT key FROM secret", &stmt, why));
  CV_TRY(cv_db_step(store->db, stmt, &row, why));
  if (row == 0) {
    CV_TRY(cv_db_begin(store->db, why));
    return in_transaction(store, add_key(store, key, rng, why), why);
  }
  memcpy(store->key, sqlite3_column_blob(stmt, 0), sizeof(store->key));
  (void)sqlite3_reset(stmt);
  return key == NULL || memcmp(key, store->key, sizeof(store->key)) == 0
             ? CV_OK
             : cv_fail(
                   why, CV_ERR_INVALID,
                   "state: its rows have left under another key than that of row_key; expected that key, or none, as "
                   "another one would randomize each row anew");
}

static enum cv_err open_file(struct cv_worker_store *store, const char *state, const uint8_t *key, struct cv_rng *rng,
                             struct cv_why *why) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof(path), "%s/given.db", state) >= (int)sizeof(path)) {
    return cv_fail(why, CV_ERR_INVALID, "state: the path is too long");
  }
  CV_TRY(cv_db_open(path, NULL, &schema, &store->db, why));
  CV_TRY(prove(store->db, why));
  CV_TRY(load_key(store, key, rng, why));
  return load(store, why);
}

enum cv_err cv_worker_store_open(const char *state, uint64_t first, uint64_t last, const uint8_t *key,
                                 struct cv_rng *rng, struct cv_worker_store **ret, struct cv_why *why) {
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
  enum cv_err err = has_room ? open_file(store, state, key, rng, why) : cv_fail(why, CV_ERR_NOMEM, "out of memory");
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
  free(store->taken);
  free(store->answer);
  explicit_bzero(store->key, sizeof(store->key));
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

const uint8_t *cv_worker_store_key(const struct cv_worker_store *store) {
  return store->key;
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

/* ---- data files ---- */

static enum cv_err check_print(struct cv_worker_store *store, const char *path, uint64_t print, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(store->db, "SELECT print FROM data_set WHERE path = ?1", &stmt, why));
  (void)sqlite3_bind_text(stmt, 1, path, -1, SQLITE_STATIC);
  CV_TRY(cv_db_step(store->db, stmt, &row, why));
  if (row != 0) {
    bool is_same = (uint64_t)sqlite3_column_int64(stmt, 0) == print;
    (void)sqlite3_reset(stmt);
    return is_same
               ? CV_OK
               : cv_fail(why, CV_ERR_INVALID,
                         "state: the stored rows of %s belong to another data set; expected the unchanged data file, "
                         "or a new state folder, with which workers give every row again",
                         path);
  }
  CV_TRY(cv_db_prepare(store->db, "INSERT INTO data_set (path, print) VALUES (?1, ?2)", &stmt, why));
  (void)sqlite3_bind_text(stmt, 1, path, -1, SQLITE_STATIC);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)print);
  return cv_db_run(store->db, stmt, why);
}

enum cv_err cv_worker_store_data(struct cv_worker_store *store, const char *path, uint64_t print, struct cv_why *why) {
  CV_TRY(cv_db_begin(store->db, why));
  return in_transaction(store, check_print(store, path, print, why), why);
}

enum cv_err cv_worker_store_rows(struct cv_worker_store *store, uint64_t print, bool (*told)(void *data, uint64_t row),
                                 void *data, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  store->print = print;
  CV_TRY(cv_db_prepare(store->db, "SELECT row FROM used_row WHERE print = ?1 ORDER BY row", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)print);
  for (;;) {
    CV_TRY(cv_db_step(store->db, stmt, &row, why));
    if (row == 0) {
      return CV_OK;
    }
    if (!told(data, (uint64_t)sqlite3_column_int64(stmt, 0))) {
      (void)sqlite3_reset(stmt);
      return cv_fail(why, CV_ERR_INVALID, "state: a stored row is not in the data file");
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

/* ---- campaigns that a data set serves ---- */

static enum cv_err prepare_for(struct cv_worker_store *store, const char *sql, uint64_t print,
                               const struct cv_served_campaign *campaign, sqlite3_stmt **ret, struct cv_why *why) {
  CV_TRY(cv_db_prepare(store->db, sql, ret, why));
  (void)sqlite3_bind_int64(*ret, 1, (sqlite3_int64)print);
  (void)sqlite3_bind_int64(*ret, 2, (sqlite3_int64)campaign->id);
  (void)sqlite3_bind_text(*ret, 3, campaign->name, -1, SQLITE_STATIC);
  return CV_OK;
}

/* The number of the other disclosures: to campaigns of another number or name, or under another law. */
static enum cv_err count_others(struct cv_worker_store *store, uint64_t print,
                                const struct cv_served_campaign *campaign, uint64_t *ret, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(prepare_for(store,
                     "SELECT count(*) FROM served WHERE print = ?1 AND NOT (campaign = ?2 AND name = ?3 AND law = ?4)",
                     print, campaign, &stmt, why));
  (void)sqlite3_bind_int64(stmt, 4, (sqlite3_int64)campaign->law);
  CV_TRY(cv_db_step(store->db, stmt, &row, why));
  *ret = (uint64_t)sqlite3_column_int64(stmt, 0);
  (void)sqlite3_reset(stmt);
  return CV_OK;
}

static enum cv_err serve(struct cv_worker_store *store, uint64_t print, const struct cv_served_campaign *campaign,
                         uint64_t most, struct cv_why *why) {
  sqlite3_stmt *stmt;
  uint64_t others;
  CV_TRY(count_others(store, print, campaign, &others, why));
  if (most > 0 && others >= most) {
    return cv_fail(
        why, CV_ERR_DENIED,
        "the rows of the worker's data file have been disclosed %llu time%s, to another campaign or with another "
        "privatizer; expected at most accept.tokens, %llu",
        (unsigned long long)others, others == 1 ? "" : "s", (unsigned long long)most);
  }
  CV_TRY(prepare_for(store, "INSERT OR IGNORE INTO served (print, campaign, name, law) VALUES (?1, ?2, ?3, ?4)", print,
                     campaign, &stmt, why));
  (void)sqlite3_bind_int64(stmt, 4, (sqlite3_int64)campaign->law);
  return cv_db_run(store->db, stmt, why);
}

enum cv_err cv_worker_store_serve(struct cv_worker_store *store, uint64_t print,
                                  const struct cv_served_campaign *campaign, uint64_t most, struct cv_why *why) {
  CV_TRY(cv_db_begin(store->db, why));
  return in_transaction(store, serve(store, print, campaign, most, why), why);
}

/* What is noted comes after what is stored: terms may come again before the next commit. */
static void add_noted(const struct cv_worker_store *store, uint64_t print, const struct cv_served_campaign *campaign,
                      uint32_t arms, uint64_t *ret_taken) {
  for (size_t i = 0; i < store->takens; i++) {
    const struct taken *taken = &store->taken[i];
    if (taken->print == print && taken->campaign == campaign->id && strcmp(taken->name, campaign->name) == 0 &&
        taken->arm < arms) {
      ret_taken[taken->arm] = taken->rows;
    }
  }
}

enum cv_err cv_worker_store_taken(struct cv_worker_store *store, uint64_t print,
                                  const struct cv_served_campaign *campaign, uint32_t arms, uint64_t *ret_taken,
                                  struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(prepare_for(store, "SELECT arm, rows FROM taken WHERE print = ?1 AND campaign = ?2 AND name = ?3", print,
                     campaign, &stmt, why));
  for (;;) {
    CV_TRY(cv_db_step(store->db, stmt, &row, why));
    if (row == 0) {
      add_noted(store, print, campaign, arms, ret_taken);
      return CV_OK;
    }
    uint64_t arm = (uint64_t)sqlite3_column_int64(stmt, 0);
    if (arm < arms) {
      ret_taken[arm] = (uint64_t)sqlite3_column_int64(stmt, 1);
    }
  }
}

enum cv_err cv_worker_store_note_taken(struct cv_worker_store *store, uint64_t print,
                                       const struct cv_served_campaign *campaign, uint32_t arm, uint64_t taken) {
  struct taken *to = CV_ARRAY_PUSH(store->taken, store->takens, store->takens_cap);
  if (to == NULL) {
    return CV_ERR_NOMEM;
  }
  *to = (struct taken){.print = print, .campaign = campaign->id, .rows = taken, .arm = arm};
  (void)snprintf(to->name, sizeof(to->name), "%s", campaign->name);
  return CV_OK;
}

/* ---- answers of people and programs ---- */

/* A question is known by its number among those about the items. */
static enum cv_err check_items(struct cv_worker_store *store, const struct cv_served_campaign *campaign,
                               struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(store->db, "SELECT 1 FROM items WHERE name = ?1 AND digest <> ?2", &stmt, why));
  (void)sqlite3_bind_text(stmt, 1, campaign->name, -1, SQLITE_STATIC);
  (void)sqlite3_bind_blob(stmt, 2, campaign->items->bytes, CV_DIGEST_BYTES, SQLITE_STATIC);
  CV_TRY(cv_db_step(store->db, stmt, &row, why));
  if (row == 0) {
    return CV_OK;
  }
  (void)sqlite3_reset(stmt);
  return cv_fail(why, CV_ERR_DENIED,
                 "state: people or programs have answered about other items under the name \"%s\"; expected the same "
                 "names in the same order, or another name for the campaign",
                 campaign->name);
}

enum cv_err cv_worker_store_answered(struct cv_worker_store *store, const struct cv_served_campaign *campaign,
                                     enum cv_err (*tell)(void *to, uint64_t worker, uint64_t question), void *to,
                                     struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_worker_store_commit(store, why));
  CV_TRY(campaign->id == CV_SERVED_ANY ? check_items(store, campaign, why) : CV_OK);
  CV_TRY(cv_db_prepare(store->db,
                       "SELECT worker, question FROM answered WHERE campaign = ?1 AND name = ?2 AND worker BETWEEN ?3 "
                       "AND ?4",
                       &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)campaign->id);
  (void)sqlite3_bind_text(stmt, 2, campaign->name, -1, SQLITE_STATIC);
  (void)sqlite3_bind_int64(stmt, 3, (sqlite3_int64)store->first);
  (void)sqlite3_bind_int64(stmt, 4, (sqlite3_int64)store->last);
  for (;;) {
    CV_TRY(cv_db_step(store->db, stmt, &row, why));
    if (row == 0) {
      return CV_OK;
    }
    enum cv_err err = tell(to, (uint64_t)sqlite3_column_int64(stmt, 0), (uint64_t)sqlite3_column_int64(stmt, 1));
    if (err != CV_OK) {
      (void)sqlite3_reset(stmt);
      return cv_fail(why, err, "the stored answers cannot be loaded: %s", cv_err_text(err));
    }
  }
}

enum cv_err cv_worker_store_note_answer(struct cv_worker_store *store, const struct cv_served_campaign *campaign,
                                        uint64_t worker, uint64_t question, bool is_answered) {
  struct answer *to = CV_ARRAY_PUSH(store->answer, store->answers, store->answers_cap);
  if (to == NULL) {
    return CV_ERR_NOMEM;
  }
  *to = (struct answer){.campaign = campaign->id,
                        .worker = worker,
                        .question = question,
                        .is_answered = is_answered,
                        .items = *campaign->items};
  (void)snprintf(to->name, sizeof(to->name), "%s", campaign->name);
  return CV_OK;
}

/* ---- writing ---- */

static enum cv_err write_items(struct cv_worker_store *store, const struct answer *answer, struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(store->db, "INSERT OR IGNORE INTO items (name, digest) VALUES (?1, ?2)", &stmt, why));
  (void)sqlite3_bind_text(stmt, 1, answer->name, -1, SQLITE_STATIC);
  (void)sqlite3_bind_blob(stmt, 2, answer->items.bytes, CV_DIGEST_BYTES, SQLITE_STATIC);
  return cv_db_run(store->db, stmt, why);
}

static enum cv_err write_answers(struct cv_worker_store *store, struct cv_why *why) {
  for (size_t i = 0; i < store->answers; i++) {
    const struct answer *answer = &store->answer[i];
    sqlite3_stmt *stmt;
    CV_TRY(
        cv_db_prepare(store->db,
                      answer->is_answered
                          ? "INSERT OR IGNORE INTO answered (campaign, name, worker, question) VALUES (?1, ?2, ?3, ?4)"
                          : "DELETE FROM answered WHERE campaign = ?1 AND name = ?2 AND worker = ?3 AND question = ?4",
                      &stmt, why));
    (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)answer->campaign);
    (void)sqlite3_bind_text(stmt, 2, answer->name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(stmt, 3, (sqlite3_int64)answer->worker);
    (void)sqlite3_bind_int64(stmt, 4, (sqlite3_int64)answer->question);
    CV_TRY(cv_db_run(store->db, stmt, why));
    CV_TRY(answer->campaign == CV_SERVED_ANY ? write_items(store, answer, why) : CV_OK);
  }
  return CV_OK;
}

static enum cv_err write_taken(struct cv_worker_store *store, struct cv_why *why) {
  for (size_t i = 0; i < store->takens; i++) {
    const struct taken *taken = &store->taken[i];
    const struct cv_served_campaign campaign = {.id = taken->campaign, .name = taken->name};
    sqlite3_stmt *stmt;
    CV_TRY(prepare_for(store,
                       "INSERT OR REPLACE INTO taken (print, campaign, name, arm, rows) VALUES (?1, ?2, ?3, ?4, ?5)",
                       taken->print, &campaign, &stmt, why));
    (void)sqlite3_bind_int64(stmt, 4, taken->arm);
    (void)sqlite3_bind_int64(stmt, 5, (sqlite3_int64)taken->rows);
    CV_TRY(cv_db_run(store->db, stmt, why));
  }
  return CV_OK;
}

static enum cv_err write_rows(struct cv_worker_store *store, struct cv_why *why) {
  for (size_t i = 0; i < store->rows; i++) {
    sqlite3_stmt *stmt;
    CV_TRY(cv_db_prepare(store->db, "INSERT INTO used_row (print, row) VALUES (?1, ?2)", &stmt, why));
    (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)store->print);
    (void)sqlite3_bind_int64(stmt, 2, store->row[i]);
    CV_TRY(cv_db_run(store->db, stmt, why));
  }
  return CV_OK;
}

static enum cv_err write_all(struct cv_worker_store *store, struct cv_why *why) {
  /* All in one transaction: a row or an answer that is given counts for its worker, whatever crashes. */
  CV_TRY(write_rows(store, why));
  CV_TRY(write_taken(store, why));
  CV_TRY(write_answers(store, why));
  for (uint32_t i = 0; i < store->count; i++) {
    sqlite3_stmt *stmt;
    CV_TRY(cv_db_prepare(store->db, "INSERT OR REPLACE INTO given (worker, scores) VALUES (?1, ?2)", &stmt, why));
    (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)store->first + store->which[i]);
    (void)sqlite3_bind_int64(stmt, 2, store->scores[store->which[i]]);
    CV_TRY(cv_db_run(store->db, stmt, why));
  }
  return CV_OK;
}

enum cv_err cv_worker_store_commit(struct cv_worker_store *store, struct cv_why *why) {
  /* Arrivals alone change nothing that must outlive the process. */
  if (store->count == 0 && store->rows == 0 && store->takens == 0 && store->answers == 0) {
    return CV_OK;
  }
  CV_TRY(cv_db_begin(store->db, why));
  CV_TRY(in_transaction(store, write_all(store, why), why));
  /* Only after the commit: after an error the daemon stops, and the frame that these belong to is not sent. */
  for (uint32_t i = 0; i < store->count; i++) {
    store->noted[store->which[i]] = false;
  }
  store->count = 0;
  store->rows = 0;
  store->takens = 0;
  store->answers = 0;
  return CV_OK;
}
