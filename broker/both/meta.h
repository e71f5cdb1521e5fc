/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a broker's or a co-broker's database that says which database it is and how far it is, and how that agrees
 * with the anchor. */
#ifndef CV_BROKER_BOTH_META_H
#define CV_BROKER_BOTH_META_H

#include "broker/both/mark.h"
#include "common/db/db.h"

/* The table, for the schema. */
#define CV_META_TABLE                                                                                               \
  "CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1), database_id BLOB NOT NULL,"                            \
  "  last_commit INTEGER NOT NULL, last_hash BLOB NOT NULL, campaigns INTEGER NOT NULL, releases INTEGER NOT NULL," \
  "  tokens INTEGER NOT NULL, promised_micro INTEGER NOT NULL);"

/* Reads the row; *ret_found is false in a new database. `whose` is "broker", for messages. CV_ERR_DAMAGED. */
CV_MUST_USE enum cv_err cv_meta_read(struct cv_db *db, const char *whose, struct cv_anchor_mark *ret, bool *ret_found,
                                     struct cv_why *why);
/* The mark of a new database: a random id, to which sealed rows and wrapped keys are bound, so that the values of two
 * databases do not mix. CV_ERR_CRYPTO. */
CV_MUST_USE enum cv_err cv_meta_new(const char *whose, struct cv_anchor_mark *ret, struct cv_why *why);
/* Writes the row of a new database; replaces all of it but the id. In the caller's transaction. */
CV_MUST_USE enum cv_err cv_meta_insert(struct cv_db *db, const struct cv_anchor_mark *mark, struct cv_why *why);
CV_MUST_USE enum cv_err cv_meta_update(struct cv_db *db, const struct cv_anchor_mark *mark, struct cv_why *why);

/* What was found of a database and its anchor, `found` and `is_anchored` if they exist. A database ahead of its anchor
 * is of the same history: the program stopped between commit and anchor. */
struct cv_store_marks cv_meta_marks(const struct cv_anchor_mark *mark, bool found, const struct cv_anchor_mark *anchor,
                                    bool is_anchored);
/* Whether a program may run with them. CV_ERR_DAMAGED, with both commit numbers, if the database is older than its
 * anchor, of another history, or exists without an anchor. */
CV_MUST_USE enum cv_err cv_meta_check(const struct cv_store_marks *marks, bool found,
                                      const struct cv_store_files *files, struct cv_why *why);

#endif
