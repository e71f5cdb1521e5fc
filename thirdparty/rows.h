/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tables of thirdparty.db, for the store and for replay. CV_ERR_DAMAGED for invalid rows. */
#ifndef CV_THIRDPARTY_ROWS_H
#define CV_THIRDPARTY_ROWS_H

#include <sqlite3.h>

#include "common/db/db.h"
#include "thirdparty/batch.h"

/* Reads an unsigned column, which SQLite stores as the signed number with the same bits. */
uint64_t cv_row_u64(sqlite3_stmt *stmt, int column);

/* Reads the first campaign after *id: its key, row (without state_plan), spec, digest and seed. Sets *id to it. The
 * caller frees *ret. */
CV_MUST_USE enum cv_err cv_thirdparty_rows_campaign(struct cv_db *db, sqlite3_int64 *id, struct cv_stored_campaign *ret,
                                                    bool *ret_found, struct cv_why *why);
/* Reads the wants of a plan, with arms below `arms`. The caller frees ret_plan->want. */
CV_MUST_USE enum cv_err cv_thirdparty_rows_wants(struct cv_db *db, sqlite3_int64 id, uint64_t plan, uint32_t arms,
                                                 struct cv_plan *ret_plan, struct cv_why *why);
/* Calls each() for every release of plans first .. last, in order of number. each() must not call this function, whose
 * statement is in use. */
typedef enum cv_err cv_thirdparty_rows_release_fn(void *data, const struct cv_release *release, struct cv_why *why);
CV_MUST_USE enum cv_err cv_thirdparty_rows_releases(struct cv_db *db, sqlite3_int64 id, uint64_t first, uint64_t last,
                                                    cv_thirdparty_rows_release_fn *each, void *data,
                                                    struct cv_why *why);

/* Calls each() for every decision after plan `plan`, in order of number. */
typedef void cv_thirdparty_rows_decision_fn(void *data, const struct cv_stored_decision *stored);
CV_MUST_USE enum cv_err cv_thirdparty_rows_decisions(struct cv_db *db, sqlite3_int64 id, uint64_t plan,
                                                     cv_thirdparty_rows_decision_fn *each, void *data,
                                                     struct cv_why *why);
/* Reads at most `arms` standings, by arm, into `standing`; their noise is not told. */
CV_MUST_USE enum cv_err cv_thirdparty_rows_standings(struct cv_db *db, sqlite3_int64 id, uint32_t arms,
                                                     struct cv_standing *standing, size_t *ret_n, struct cv_why *why);

#endif
