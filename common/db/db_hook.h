/* SPDX-License-Identifier: Apache-2.0 */
/* For proof.c and copy.c only: the inside of a database, and calls at the ends of its transactions. */
#ifndef CV_DB_HOOK_H
#define CV_DB_HOOK_H

#include "common/db/db.h"

sqlite3 *cv_db_handle(struct cv_db *db);
/* Maps an SQLite code to an error and writes the message. */
enum cv_err cv_db_failed(struct cv_db *db, int code, struct cv_why *why);
/* That it was opened with. */
const struct cv_db_schema *cv_db_schema(const struct cv_db *db);
const char *cv_db_path(const struct cv_db *db);
bool cv_db_is_readonly(const struct cv_db *db);

struct cv_db_hook {
  /* Inside the transaction, before its commit; an error prevents the commit. */
  enum cv_err (*committing)(void *data, struct cv_why *why);
  void (*committed)(void *data);
  void (*rolled_back)(void *data);
  /* After the handle is closed: frees `data`. */
  void (*closed)(void *data);
};

/* At most one hook; `hook` is static, and the database takes `data`. */
void cv_db_set_hook(struct cv_db *db, const struct cv_db_hook *hook, void *data);
/* The `data` of the hook; NULL: there is no hook. */
void *cv_db_hook_data(struct cv_db *db);

#endif
