/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third-party's database, thirdparty.db: what was released to it, what it decided and from which numbers. Meant to
 * be read by a person with sqlite3 (while the daemon is stopped, or on a copy); schema.c documents each table, and the
 * views `ranking`, `progress` and `decision_log` answer the usual questions. It holds no token, sum or noise.
 *
 * There is no secret here, so what accounts for the rows are checksums: they find what a disk or a slip has changed. A
 * lie is found by replay, and by the chains over releases and plans that the broker has, too.
 */
#ifndef CV_THIRDPARTY_STORE_H
#define CV_THIRDPARTY_STORE_H

#include "common/base/err.h"
#include "common/db/proof.h"
#include "thirdparty/batch.h"

extern const struct cv_db_schema CV_THIRDPARTY_SCHEMA;
/* cv_proof_begin() for a database of this schema. */
CV_MUST_USE enum cv_err cv_thirdparty_prove(struct cv_db *db, enum cv_proof *ret, struct cv_why *why);

struct cv_store;

/* `vfs` NULL: the default. */
CV_MUST_USE enum cv_err cv_store_open(const char *path, const char *vfs, struct cv_store **ret, struct cv_why *why);
void cv_store_close(struct cv_store *store);

/* One batch, one transaction: all of it or nothing. */
CV_MUST_USE enum cv_err cv_store_apply(struct cv_store *store, const struct cv_batch *batch, struct cv_why *why);

/* Hands over every campaign, closed ones first, of which only the numbers are read; the others in the order in which
 * they came. An error from `each` ends the loading and is returned. */
typedef enum cv_err cv_store_each_fn(void *data, const struct cv_stored_campaign *stored, struct cv_why *why);
CV_MUST_USE enum cv_err cv_store_load(struct cv_store *store, cv_store_each_fn *each, void *data, struct cv_why *why);

#endif
