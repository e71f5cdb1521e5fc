/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the tables of thirdparty.db, for the store and for replay. What does not fit is CV_ERR_DAMAGED. */
#ifndef CV_THIRDPARTY_ROWS_H
#define CV_THIRDPARTY_ROWS_H

#include <sqlite3.h>

#include "common/db/db.h"
#include "thirdparty/batch.h"

/* A column that SQLite keeps as the signed number of the same bits. */
uint64_t cv_row_u64(sqlite3_stmt *stmt, int column);

/* The first campaign after *id: its key, row (without state_plan), spec, digest and seed; *id moves on to it. */
CV_MUST_USE enum cv_err cv_rows_campaign(struct cv_db *db, sqlite3_int64 *id, struct cv_stored_campaign *ret,
                                         bool *ret_found, struct cv_why *why);
/* The wants of a plan, arms below `arms`. The caller frees ret_plan->want. */
CV_MUST_USE enum cv_err cv_rows_wants(struct cv_db *db, sqlite3_int64 id, uint64_t plan, uint32_t arms,
                                      struct cv_plan *ret_plan, struct cv_why *why);
/* Every release of plans first .. last, in order of number. `each` must not ask for releases itself. */
typedef enum cv_err cv_rows_release_fn(void *data, const struct cv_release *release, struct cv_why *why);
CV_MUST_USE enum cv_err cv_rows_releases(struct cv_db *db, sqlite3_int64 id, uint64_t first, uint64_t last,
                                         cv_rows_release_fn *each, void *data, struct cv_why *why);

#endif
