/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's database. One batch is one transaction, followed by the anchor. Secrets (journal, chunks) are sealed
 * with a random key per campaign (vault.h, store/sealed.h). The rows are in SQLite or in PostgreSQL
 * (store/backend.h).
 */
#ifndef CV_BROKER_STORE_H
#define CV_BROKER_STORE_H

#include "broker/batch.h"
#include "broker/both/anchor.h"
#include "broker/both/vault.h"
#include "broker/core.h"
#include "broker/store/backend.h"
#include "common/crypto/ring.h"
#include "common/db/db.h"

struct cv_broker_store;

/*
 * Opens or creates the database and compares it with its anchor. CV_ERR_DAMAGED, with both commit numbers, if the
 * database is older than its anchor, of another history, or exists without an anchor; also if the ring has no key that
 * fits. `ring` is borrowed for the call. Unless `readonly`, all keys are wrapped by the ring's current key afterwards.
 */
CV_MUST_USE enum cv_err cv_broker_store_open(const struct cv_store_files *files, const struct cv_ring *ring,
                                             struct cv_broker_store **ret, struct cv_why *why);
/* Makes a store over an open backend at `mark`, which it takes; vault and anchor are borrowed. CV_ERR_NOMEM: nothing is
 * taken. */
CV_MUST_USE enum cv_err cv_broker_store_over(const struct cv_backend *backend, const struct cv_anchor_mark *mark,
                                             struct cv_vault *vault, struct cv_anchor *anchor,
                                             struct cv_broker_store **ret, struct cv_why *why);
void cv_broker_store_close(struct cv_broker_store *store);
/* The open database, for a copy of it; NULL if it is not SQLite. */
struct cv_db *cv_broker_store_database(const struct cv_broker_store *store);
/* Its id, CV_DATABASE_ID_BYTES, for as long as it is open. */
const uint8_t *cv_broker_store_id(const struct cv_broker_store *store);
/* Whether a database exists at the path. */
bool cv_broker_store_exists(const char *database);

/* The term in which this broker commits; 0: the database is its own. */
uint64_t cv_broker_store_term(const struct cv_broker_store *store);

/* The key of tickets; the caller wipes it. It is unique to this database, and each recovery makes another one, so that
 * tickets which were issued in the lost time do not open any more. */
CV_MUST_USE enum cv_err cv_broker_store_tickets(struct cv_broker_store *store, struct cv_key *ret, struct cv_why *why);

/* The keys of its secrets. */
struct cv_vault *cv_broker_store_vault(struct cv_broker_store *store);

/* What was found when the store was opened. */
void cv_broker_store_marks(const struct cv_broker_store *store, struct cv_store_marks *ret);
/* Calls `told` for what somebody has added to the database: triggers, tables, ... */
CV_MUST_USE enum cv_err cv_broker_store_strangers(struct cv_broker_store *store,
                                                  void (*told)(void *data, const char *what), void *data,
                                                  struct cv_why *why);
/* Sets the number of the next commit, which must be above the last one. */
void cv_broker_store_leap(struct cv_broker_store *store, uint64_t commit);
/* Writes the anchor from the database's mark. */
CV_MUST_USE enum cv_err cv_broker_store_anchor(struct cv_broker_store *store, struct cv_why *why);

/* Restores a new core: the open campaigns, and only the records of ended ones. */
CV_MUST_USE enum cv_err cv_broker_store_load(struct cv_broker_store *store, struct cv_broker *broker, uint64_t now_ms,
                                             uint64_t wall_ms, struct cv_why *why);
/* An ended campaign's rows, read and not restored: a buffer for each kind. All zero is valid. */
struct cv_fetched {
  uint32_t campaign;
  struct cv_buf rows[6];
};

void cv_fetched_fini(struct cv_fetched *fetched);
/* Reads one ended campaign, also on the storage thread: the core goes on meanwhile. CV_ERR_DAMAGED as below. The caller
 * ends *ret with cv_fetched_fini(), after an error, too. Must not be called while a commit runs. */
CV_MUST_USE enum cv_err cv_broker_store_read(struct cv_broker_store *store, uint32_t campaign, struct cv_fetched *ret,
                                             struct cv_why *why);
/* Restores it, without the database; only if it is still awaited (cv_broker_awaits()). CV_ERR_DAMAGED as below. */
CV_MUST_USE enum cv_err cv_broker_store_restore(struct cv_broker *broker, const struct cv_fetched *fetched,
                                                struct cv_why *why);
/* Both in one: restores one ended campaign (cv_broker_wanted()). CV_ERR_DAMAGED if its rows are damaged: the caller
 * then calls cv_broker_fetch_failed(). Must not be called while a commit runs. */
CV_MUST_USE enum cv_err cv_broker_store_fetch(struct cv_broker_store *store, struct cv_broker *broker,
                                              uint32_t campaign, struct cv_why *why);
/* Fetches the wanted campaign, if there is one; calls cv_broker_fetch_failed() if its rows are damaged. */
CV_MUST_USE enum cv_err cv_broker_store_serve(struct cv_broker_store *store, struct cv_broker *broker,
                                              struct cv_why *why);
/* Commits, then writes the anchor. After an error the daemon must stop: it is unknown whether the batch is stored. */
CV_MUST_USE enum cv_err cv_broker_store_commit(struct cv_broker_store *store, const struct cv_broker_batch *batch,
                                               struct cv_why *why);

#endif
