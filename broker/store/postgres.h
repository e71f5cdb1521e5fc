/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker's rows (backend.h) in PostgreSQL, shared by several brokers of the same name (remote.h).
 *
 * The active broker holds an advisory lock on the only session that writes, and in the table `term` a row with an id
 * that the database drew. Each commit is one transaction whose first statement, the fence, violates NOT NULL unless the
 * term and the last commit are those that this broker knows: a broker that was replaced, frozen or cut off cannot
 * commit any more, whatever it believes. Time decides only when a standby tries, never whether a commit is valid.
 *
 * Journal and chunks are sealed under keys of their term (vault.h); all other rows have a keyed code that binds them to
 * database, table and number. The database's administrator is trusted for freshness alone: codes find a changed row,
 * the anchor and the terms find an older or another history, and a deleted row shows when the rows are compared with
 * the totals.
 */
#ifndef CV_BROKER_STORE_POSTGRES_H
#define CV_BROKER_STORE_POSTGRES_H

#include "broker/store/remote.h"

extern const struct cv_remote_ops cv_postgres;

#endif
