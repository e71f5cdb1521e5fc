/* SPDX-License-Identifier: Apache-2.0 */
/* A vault's rows (vault_rows.h) in an SQLite database: the table `wrapped_key`. */
#ifndef CV_BROKER_BOTH_VAULT_TABLE_H
#define CV_BROKER_BOTH_VAULT_TABLE_H

#include "broker/both/vault_rows.h"
#include "common/db/db.h"

extern const char CV_VAULT_STEP[]; /* the schema step that makes the table */
/* Makes an empty temporary table for a database before that step that is open for reading only. */
extern const char CV_VAULT_STAND_IN[];

/* The database is borrowed. */
struct cv_vault_rows cv_vault_table(struct cv_db *db);

#endif
