/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody has added to a database: tables, indexes, views and triggers that its schema does not make. */
#ifndef CV_DB_STRANGERS_H
#define CV_DB_STRANGERS_H

#include "common/db/db.h"

/* Told of each: "trigger x on y", "table x", "table x, of another form". */
typedef void cv_db_stranger_fn(void *data, const char *what);
/* The schema that the database was opened with must still be there. */
CV_MUST_USE enum cv_err cv_db_strangers(struct cv_db *db, cv_db_stranger_fn *told, void *data, struct cv_why *why);

#endif
