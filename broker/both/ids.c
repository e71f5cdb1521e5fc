/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/ids.h"

enum cv_err cv_ids_next(struct cv_db *db, const char *sql, uint32_t after, uint32_t *ret, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db, sql, &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, after);
  CV_TRY(cv_db_step(db, stmt, &row, why));
  sqlite3_int64 found = row == 0 ? 0 : sqlite3_column_int64(stmt, 0);
  (void)sqlite3_reset(stmt);
  /* The number is the parameter of the next call: cut to 32 bits it would start over and never end. */
  if (found > UINT32_MAX) {
    return cv_fail(why, CV_ERR_DAMAGED, "the broker's database: campaign %lld; expected below 2^32", (long long)found);
  }
  *ret = (uint32_t)found;
  return CV_OK;
}
