/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a broker's store (broker/store.h) keeps its rows: the interface of one database. SQLite (sqlite.h) and
 * PostgreSQL (postgres.h) implement it; what is common to both is in the store: sealing, the hash over commits, the
 * anchor, and the order in which rows are read.
 *
 * One thread at a time uses a backend. `data` is that of struct cv_backend.
 */
#ifndef CV_BROKER_STORE_BACKEND_H
#define CV_BROKER_STORE_BACKEND_H

#include "broker/batch.h"
#include "broker/both/mark.h"
#include "broker/both/vault.h"

/* What is read: of one campaign, then of all. */
enum cv_backend_query {
  CV_BACKEND_CAMPAIGN,  /* its description */
  CV_BACKEND_PLAN,      /* by number */
  CV_BACKEND_RELEASE,   /* by number */
  CV_BACKEND_LEDGER,    /* by arm */
  CV_BACKEND_STANDINGS, /* none before the first */
  CV_BACKEND_STATE,     /* none before the first */
  CV_BACKEND_ENDED,     /* by campaign */
  CV_BACKEND_RECOVERY,  /* by number, which is also in `campaign` */
  CV_BACKEND_CHUNK,     /* in any order */
  CV_BACKEND_JOURNAL,   /* by commit */
};

/* A stored row; `bytes` as they were written, of journal and chunks sealed. Borrowed for the call. */
struct cv_backend_row {
  uint32_t campaign;
  uint32_t chunk;  /* kind of a chunk; else 0 */
  uint64_t number; /* of a chunk; else 0 */
  uint64_t commit; /* that wrote a chunk or journal row; else 0 */
  const uint8_t *bytes;
  size_t n;
};

typedef enum cv_err cv_backend_row_fn(void *taker, const struct cv_backend_row *row, struct cv_why *why);

struct cv_backend_ops {
  /* A commit: begin with the store's new mark, rows, commit. CV_OK of `commit`: all of it is durable. After an error of
   * any of them, rollback; it may then be unknown whether the commit is stored. */
  enum cv_err (*begin)(void *data, const struct cv_anchor_mark *mark, struct cv_why *why);
  /* Writes the row of an operation that has one, with `bytes` in place of those in the batch. Plans, releases and
   * recoveries are only inserted: a second row of the same number fails the commit, so that a stored release can never
   * be replaced by another draw of its noise. */
  enum cv_err (*write)(void *data, const struct cv_op *op, const uint8_t *bytes, size_t n, struct cv_why *why);
  /* Deletes a campaign's journal and chunks. */
  enum cv_err (*purge)(void *data, uint32_t campaign, struct cv_why *why);
  /* Deletes a campaign's plans and releases up to `number`; CV_DROP_ALL: and its ledger and description. */
  enum cv_err (*drop)(void *data, uint32_t campaign, uint64_t number, struct cv_why *why);
  enum cv_err (*commit)(void *data, struct cv_why *why);
  void (*rollback)(void *data);

  /* Calls `take` for each row, until one call fails. It may use the vault meanwhile. `campaign` is for the queries of
   * one. */
  enum cv_err (*each)(void *data, enum cv_backend_query query, uint32_t campaign, cv_backend_row_fn *take, void *taker,
                      struct cv_why *why);
  /* The first campaign above `after` that has not ended, or has no record of its end; 0: none. */
  enum cv_err (*next_open)(void *data, uint32_t after, uint32_t *ret, struct cv_why *why);
  /* Checks the codes of one campaign's rows, which may have changed since the start. CV_ERR_DAMAGED. */
  enum cv_err (*check)(void *data, uint32_t campaign, struct cv_why *why);
  /* Calls `told` for what somebody has added to the database: triggers, tables, ... */
  enum cv_err (*strangers)(void *data, void (*told)(void *teller, const char *what), void *teller, struct cv_why *why);
  /* Frees everything; `data` may be half built. */
  void (*close)(void *data);
};

struct cv_backend {
  const struct cv_backend_ops *ops;
  void *data;
};

/* Does nothing if it is zero. */
static inline void cv_backend_close(const struct cv_backend *backend) {
  if (backend->ops != NULL) {
    backend->ops->close(backend->data);
  }
}

#endif
