/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker's rows (backend.h) in an SQLite database: one file, of one broker. Every row is covered by a code (proof.h).
 *
 * Tables: meta, campaign, plan, release (the noisy sums, not sealed: they leave the broker anyway), ledger, recovery,
 * ended (records of ended campaigns), journal, chunk, wrapped_key.
 */
#ifndef CV_BROKER_STORE_SQLITE_H
#define CV_BROKER_STORE_SQLITE_H

#include "broker/both/anchor.h"
#include "broker/store/backend.h"
#include "common/db/db.h"

/* A database that has been opened. */
struct cv_sqlite_opened {
  struct cv_db *db;            /* the backend's */
  struct cv_anchor *anchor;    /* the caller's; NULL: read-only */
  struct cv_anchor_mark mark;  /* the database's own */
  struct cv_store_marks found; /* for repair and examination */
  struct cv_backend backend;   /* the caller closes it, also after an error if it is not zero */
};

/*
 * Opens or creates the database, opens the vault on it, and compares it with its anchor: cv_broker_store_open(). The
 * vault is borrowed.
 */
CV_MUST_USE enum cv_err cv_sqlite_open(const struct cv_store_files *files, struct cv_vault *vault,
                                       struct cv_sqlite_opened *ret, struct cv_why *why);

#endif
