/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third-party's database, thirdparty.db: releases, decisions and the numbers behind them. A person can read it with
 * sqlite3 (while the daemon is stopped, or on a copy); schema.c documents each table, and the views `ranking`,
 * `progress` and `decision_log` answer common questions. It contains no token, exact sum or noise value.
 *
 * The database has no secret, so checksums protect its rows: they detect damage and accidental changes. Replay, and the
 * hash chains over releases and plans that the broker has as well, detect deliberate changes.
 */
#ifndef CV_THIRDPARTY_STORE_H
#define CV_THIRDPARTY_STORE_H

#include "common/base/err.h"
#include "common/db/proof.h"
#include "thirdparty/batch.h"

extern const struct cv_db_schema CV_THIRDPARTY_SCHEMA;
/* cv_proof_begin() for a database of this schema. */
CV_MUST_USE enum cv_err cv_thirdparty_prove(struct cv_db *db, struct cv_why *why);
/* cv_db_strangers(). */
CV_MUST_USE enum cv_err cv_thirdparty_strangers(struct cv_db *db, void (*told)(void *data, const char *what),
                                                void *data, struct cv_why *why);

struct cv_thirdparty_store;

/* `vfs` NULL: the default. */
CV_MUST_USE enum cv_err cv_thirdparty_store_open(const char *path, const char *vfs, struct cv_thirdparty_store **ret,
                                                 struct cv_why *why);
void cv_thirdparty_store_close(struct cv_thirdparty_store *store);

/* Checks a copy of a database as cv_backup_check_fn says (common/daemon/backup_command.h); *ret_commit is 0. */
CV_MUST_USE enum cv_err cv_thirdparty_check_copy(const void *settings, const char *path, uint64_t *ret_commit,
                                                 struct cv_why *why);
/* The open database, for a copy of it. */
struct cv_db *cv_thirdparty_store_database(const struct cv_thirdparty_store *store);

/* One batch, one transaction: all of it or nothing. */
CV_MUST_USE enum cv_err cv_thirdparty_store_commit(struct cv_thirdparty_store *store,
                                                   const struct cv_thirdparty_batch *batch, struct cv_why *why);

/* Calls each() for every campaign: first the closed ones, with their keys only, then the open ones in order of arrival.
 * An error of each() stops the loading and is returned. */
typedef enum cv_err cv_thirdparty_store_each_fn(void *data, const struct cv_stored_campaign *stored,
                                                struct cv_why *why);
CV_MUST_USE enum cv_err cv_thirdparty_store_load(struct cv_thirdparty_store *store, cv_thirdparty_store_each_fn *each,
                                                 void *data, struct cv_why *why);

#endif
