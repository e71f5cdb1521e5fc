/* SPDX-License-Identifier: Apache-2.0 */
/* A vault's rows (vault_rows.h) in an SQLite database: the table `wrapped_key`. */
#ifndef CV_BROKER_BOTH_VAULT_TABLE_H
#define CV_BROKER_BOTH_VAULT_TABLE_H

#include "broker/both/vault_rows.h"
#include "common/db/db.h"

/* The table, for the schema. */
#define CV_VAULT_TABLE                                                                               \
  "CREATE TABLE wrapped_key (campaign INTEGER NOT NULL, use INTEGER NOT NULL, master BLOB NOT NULL," \
  "  wrapped BLOB NOT NULL, PRIMARY KEY (campaign, use));"

/* The database is borrowed. */
struct cv_vault_rows cv_vault_table(struct cv_db *db);

#endif
