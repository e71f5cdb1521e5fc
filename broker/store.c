/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/fetch.h"
#include "broker/recover.h"
#include "broker/restore.h"
#include "broker/store/sealed.h"
#include "broker/store/sqlite.h"

struct cv_broker_store {
  struct cv_backend backend;
  struct cv_db *db; /* the backend's, if it is SQLite */
  struct cv_anchor *anchor;
  /* The database's own mark after its last commit; then both marks as found when the store was opened. */
  struct cv_anchor_mark mark;
  struct cv_store_marks found;
  struct cv_vault *vault;
  bool is_owner; /* of vault and anchor */
  struct cv_sealed sealed;
};

struct cv_db *cv_broker_store_database(const struct cv_broker_store *store) {
  return store->db;
}

const uint8_t *cv_broker_store_id(const struct cv_broker_store *store) {
  return store->mark.database;
}

uint64_t cv_broker_store_term(const struct cv_broker_store *store) {
  return store->mark.term;
}

bool cv_broker_store_exists(const char *database) {
  struct stat info;
  return stat(database, &info) == 0;
}

/* ---- opening ---- */

enum cv_err cv_broker_store_over(const struct cv_backend *backend, const struct cv_anchor_mark *mark,
                                 struct cv_vault *vault, struct cv_anchor *anchor, struct cv_broker_store **ret,
                                 struct cv_why *why) {
  struct cv_broker_store *store = calloc(1, sizeof(*store));
  if (store == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  *store = (struct cv_broker_store){.backend = *backend, .anchor = anchor, .mark = *mark, .vault = vault};
  store->sealed.vault = vault;
  memcpy(store->sealed.database, mark->database, sizeof(store->sealed.database));
  *ret = store;
  return CV_OK;
}

enum cv_err cv_broker_store_open(const struct cv_store_files *files, const struct cv_ring *ring,
                                 struct cv_broker_store **ret, struct cv_why *why) {
  struct cv_vault *vault;
  struct cv_broker_store *store;
  struct cv_sqlite_opened opened = {.db = NULL};
  if (cv_vault_new(ring, &vault) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  enum cv_err err = cv_sqlite_open(files, vault, &opened, why);
  if (err == CV_OK) {
    err = cv_broker_store_over(&opened.backend, &opened.mark, vault, opened.anchor, &store, why);
  }
  if (err != CV_OK) {
    cv_vault_free(vault);
    cv_anchor_close(opened.anchor);
    cv_backend_close(&opened.backend);
    return err;
  }
  store->is_owner = true;
  store->db = opened.db;
  store->found = opened.found;
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
  /* Secrets are wiped before their memory is freed. */
  if (store->is_owner) {
    cv_vault_free(store->vault);
    cv_anchor_close(store->anchor);
  }
  cv_sealed_fini(&store->sealed);
  cv_backend_close(&store->backend);
  free(store);
}

/* ---- committing ---- */

static bool is_sealed(enum cv_op_kind kind) {
  return kind == CV_OP_JOURNAL || kind == CV_OP_CHUNK;
}

/* Writes the operation's row. */
static enum cv_err write_row(struct cv_broker_store *store, const struct cv_broker_batch *batch, const struct cv_op *op,
                             struct cv_why *why) {
  const uint8_t *bytes = batch->bytes.data + op->at;
  size_t n = op->n;
  if (is_sealed(op->kind)) {
    const struct cv_sealed_place place = {
        .campaign = op->campaign, .kind = op->chunk, .number = op->number, .commit = batch->commit};
    CV_TRY(cv_sealed_close(&store->sealed, &place, bytes, n, why));
    bytes = store->sealed.out.data;
    n = store->sealed.out.len;
  }
  return store->backend.ops->write(store->backend.data, op, bytes, n, why);
}

/* Deletes a campaign's secrets. The transaction of the purge also stores what has to outlive them: the charges to
 * workers, which only journal rows held until then (see fold() in image.c). */
static enum cv_err purge(struct cv_broker_store *store, uint32_t campaign, struct cv_why *why) {
  CV_TRY(store->backend.ops->purge(store->backend.data, campaign, why));
  /* What remains of its rows elsewhere, in the log or in copies of the files, opens no more without the key. */
  return cv_vault_drop(store->vault, campaign, why);
}

/* The ledger's accounts are those of the campaign's arms; the workers' accounts are chunks without a campaign. */
static enum cv_err drop(struct cv_broker_store *store, uint32_t campaign, uint64_t upto, struct cv_why *why) {
  if (upto == CV_DROP_ALL) {
    CV_TRY(cv_vault_drop(store->vault, campaign, why));
  }
  return store->backend.ops->drop(store->backend.data, campaign, upto, why);
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
  CV_TRY(store->backend.ops->begin(store->backend.data, mark, why));
  for (size_t i = 0; i < batch->ops; i++) {
    CV_TRY(apply(store, batch, &batch->op[i], why));
  }
  return store->backend.ops->commit(store->backend.data, why);
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
  enum cv_err err = transact(store, batch, &mark, why);
  if (err != CV_OK) {
    store->backend.ops->rollback(store->backend.data);
    return err;
  }
  /* Only a stored commit advances the mark, from which the next hash and the anchor follow. */
  store->mark = mark;
  return cv_anchor_write(store->anchor, &mark, why);
}

enum cv_err cv_broker_store_strangers(struct cv_broker_store *store, void (*told)(void *data, const char *what),
                                      void *data, struct cv_why *why) {
  return store->backend.ops->strangers(store->backend.data, told, data, why);
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
typedef enum cv_err sealed_fn(struct cv_broker_store *store, struct cv_broker *broker,
                              const struct cv_backend_row *row);

/* One kind of row: `restore` for rows that are not sealed, `sealed` for those that are. */
struct load_step {
  enum cv_backend_query query;
  const char *what;
  restore_fn *restore;
  sealed_fn *sealed;
};

/* A step at work. */
struct loading {
  struct cv_broker_store *store;
  struct cv_broker *broker;
  const struct load_step *step;
};

/* Opens a row's value for the place that it is in, under the commit that wrote it. */
static enum cv_err unseal(struct cv_broker_store *store, const struct cv_backend_row *row, uint64_t number,
                          struct cv_reader *ret) {
  const struct cv_sealed_place place = {
      .campaign = row->campaign, .kind = row->chunk, .number = number, .commit = row->commit};
  CV_TRY(cv_sealed_open(&store->sealed, &place, row->bytes, row->n));
  *ret = cv_reader_over(store->sealed.out.data, store->sealed.out.len);
  return CV_OK;
}

static enum cv_err take_chunk(struct cv_broker_store *store, struct cv_broker *broker,
                              const struct cv_backend_row *row) {
  struct cv_reader bytes;
  CV_TRY(unseal(store, row, row->number, &bytes));
  return cv_broker_restore_chunk(broker, row->campaign, (enum cv_kind)row->chunk, row->number, row->commit, &bytes);
}

static enum cv_err take_journal(struct cv_broker_store *store, struct cv_broker *broker,
                                const struct cv_backend_row *row) {
  struct cv_reader bytes;
  /* A journal row is numbered by its commit (fill_journal() in image.c). */
  CV_TRY(unseal(store, row, row->commit, &bytes));
  return cv_broker_restore_journal(broker, row->campaign, row->commit, &bytes);
}

static enum cv_err take_row(void *taker, const struct cv_backend_row *row, struct cv_why *why) {
  const struct loading *loading = taker;
  const struct load_step *step = loading->step;
  struct cv_reader image = cv_reader_over(row->bytes, row->n);
  enum cv_err err = step->restore != NULL ? step->restore(loading->broker, row->campaign, &image)
                                          : step->sealed(loading->store, loading->broker, row);
  bool is_ours = err == CV_ERR_NOMEM || err == CV_ERR_CRYPTO; /* not caused by the row */
  return err == CV_OK ? err
                      : cv_fail(why, is_ours ? err : CV_ERR_DAMAGED, "the broker's database: a %s of campaign %u: %s",
                                step->what, row->campaign, cv_err_text(err));
}

/* Restores each row of the step, of campaign `id` if it is of one. */
static enum cv_err each_row(struct cv_broker_store *store, struct cv_broker *broker, const struct load_step *step,
                            uint32_t id, struct cv_why *why) {
  struct loading loading = {.store = store, .broker = broker, .step = step};
  return store->backend.ops->each(store->backend.data, step->query, id, take_row, &loading, why);
}

/* The rows of one campaign except secrets, which an ended campaign does not have. The order is that of restore.h: later
 * rows are checked against earlier ones. */
static const struct load_step of_campaign[] = {
    {CV_BACKEND_CAMPAIGN, "description", cv_broker_restore_campaign, NULL},
    {CV_BACKEND_PLAN, "plan", cv_broker_restore_plan, NULL},
    {CV_BACKEND_RELEASE, "release", cv_broker_restore_release, NULL},
    {CV_BACKEND_LEDGER, "account", cv_broker_restore_ledger, NULL},
    {CV_BACKEND_STANDINGS, "table of standings", cv_broker_restore_standings, NULL},
    {CV_BACKEND_STATE, "state", cv_broker_restore_state, NULL},
};

static enum cv_err restore_whole(struct cv_broker *broker, uint32_t id, struct cv_why *why) {
  enum cv_err err = cv_broker_restore_whole(broker, id);
  return err == CV_OK ? err
                      : cv_fail(why, err, "the broker's database: rows of campaign %u contradict each other: %s", id,
                                cv_err_text(err));
}

static enum cv_err load_campaign(struct cv_broker_store *store, struct cv_broker *broker, uint32_t id,
                                 struct cv_why *why) {
  for (size_t i = 0; i < CV_COUNT(of_campaign); i++) {
    CV_TRY(each_row(store, broker, &of_campaign[i], id, why));
  }
  return restore_whole(broker, id, why);
}

/* ---- a campaign that has ended ---- */

/* Rows of one step are kept one after the other, each with its length. */
static enum cv_err keep_row(void *taker, const struct cv_backend_row *row, struct cv_why *why) {
  struct cv_buf *rows = taker;
  cv_buf_put_bytes(rows, row->bytes, row->n);
  return cv_buf_ok(rows) ? CV_OK : cv_fail(why, CV_ERR_NOMEM, "out of memory");
}

void cv_fetched_fini(struct cv_fetched *fetched) {
  for (size_t i = 0; i < CV_COUNT(fetched->rows); i++) {
    cv_buf_fini(&fetched->rows[i]);
  }
}

enum cv_err cv_broker_store_read(struct cv_broker_store *store, uint32_t id, struct cv_fetched *ret,
                                 struct cv_why *why) {
  _Static_assert(CV_COUNT(of_campaign) == CV_COUNT(ret->rows), "the rows of a campaign");
  const struct cv_backend_ops *ops = store->backend.ops;
  ret->campaign = id;
  /* The row may have changed since the start, when all codes were checked: check those of this campaign again. */
  CV_TRY(ops->check(store->backend.data, id, why));
  for (size_t i = 0; i < CV_COUNT(of_campaign); i++) {
    cv_buf_clear(&ret->rows[i]);
    CV_TRY(ops->each(store->backend.data, of_campaign[i].query, id, keep_row, &ret->rows[i], why));
  }
  return CV_OK;
}

enum cv_err cv_broker_store_restore(struct cv_broker *broker, const struct cv_fetched *fetched, struct cv_why *why) {
  struct cv_backend_row row = {.campaign = fetched->campaign};
  for (size_t i = 0; i < CV_COUNT(of_campaign); i++) {
    struct loading loading = {.broker = broker, .step = &of_campaign[i]};
    struct cv_reader rows = cv_reader_over(fetched->rows[i].data, fetched->rows[i].len);
    while (cv_reader_has_more(&rows)) {
      row.bytes = cv_read_bytes(&rows, &row.n);
      CV_REQUIRE(row.bytes != NULL);
      CV_TRY(take_row(&loading, &row, why));
    }
  }
  return restore_whole(broker, fetched->campaign, why);
}

enum cv_err cv_broker_store_fetch(struct cv_broker_store *store, struct cv_broker *broker, uint32_t id,
                                  struct cv_why *why) {
  struct cv_fetched fetched = {.campaign = id};
  enum cv_err err = cv_broker_store_read(store, id, &fetched, why);
  err = err == CV_OK ? cv_broker_store_restore(broker, &fetched, why) : err;
  cv_fetched_fini(&fetched);
  return err;
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

/* Restores the open campaigns, one after the other. */
static enum cv_err load_campaigns(struct cv_broker_store *store, struct cv_broker *broker, struct cv_why *why) {
  for (uint32_t id = 0;;) {
    CV_TRY(store->backend.ops->next_open(store->backend.data, id, &id, why));
    if (id == 0) {
      return CV_OK;
    }
    CV_TRY(load_campaign(store, broker, id, why));
  }
}

enum cv_err cv_broker_store_load(struct cv_broker_store *store, struct cv_broker *broker, uint64_t now_ms,
                                 uint64_t wall_ms, struct cv_why *why) {
  static const struct load_step ended = {CV_BACKEND_ENDED, "record", cv_broker_restore_ended, NULL};
  static const struct load_step steps[] = {
      {CV_BACKEND_RECOVERY, "recovery", cv_broker_restore_recovery, NULL},
      {CV_BACKEND_CHUNK, "chunk", NULL, take_chunk},
      {CV_BACKEND_JOURNAL, "journal row", NULL, take_journal},
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
