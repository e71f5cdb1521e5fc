/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite the way the daemons use it: WAL, synchronous FULL, temporary data in memory, foreign keys on, freed pages
 * overwritten. SQLite's codes become enum cv_err here and nowhere else: CV_ERR_DAMAGED for a corrupt file,
 * CV_ERR_STATE for one that another process holds, CV_ERR_EXISTS for a key that is taken, CV_ERR_INVALID for any other
 * broken constraint, CV_ERR_DENIED for missing rights, CV_ERR_IO for the disk.
 *
 * A database that is open for writing is locked against every other process, readers too. One thread at a time may use
 * it; which one may change.
 */
#ifndef CV_DB_H
#define CV_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct cv_db;

/* One step of a schema: `sql` takes a database from version i to i + 1. */
struct cv_db_schema {
  uint32_t application_id; /* refuses a database of another program */
  const char *const *steps;
  int count;
  int oldest; /* the first version that is read as it is, when the database is opened for reading only; 0: the last */
  int known;  /* the version that it has been of: an earlier one is refused. 0: nobody knows */
};

/*
 * Opens or creates (`vfs` NULL: the default), checks identity, integrity of the header and version, applies missing
 * steps. A missing folder, a file that is no database, one of another program or of a later version: one line in `why`.
 * CV_ERR_DAMAGED if `quick_check` fails. A file that is refused is not changed. The file gets mode 0600.
 */
CV_MUST_USE enum cv_err cv_db_open(const char *path, const char *vfs, const struct cv_db_schema *schema,
                                   struct cv_db **ret, struct cv_why *why);
/* The same, for reading only: the file must exist, be of a version that is read, and nowhere be open for writing. */
CV_MUST_USE enum cv_err cv_db_open_readonly(const char *path, const struct cv_db_schema *schema, struct cv_db **ret,
                                            struct cv_why *why);
void cv_db_close(struct cv_db *db);
/* The schema's version as it is now, and as it was found (0: it was new). */
int cv_db_version(const struct cv_db *db);
int cv_db_version_found(const struct cv_db *db);

/* Statements without results. Errors as of every call here: the kind, and the line with the file. */
CV_MUST_USE enum cv_err cv_db_exec(struct cv_db *db, const char *sql, struct cv_why *why);
/* A transaction, for writing unless the database is open for reading only. */
CV_MUST_USE enum cv_err cv_db_begin(struct cv_db *db, struct cv_why *why);
/* CV_OK: it is on disk. After an error nobody knows whether it is. */
CV_MUST_USE enum cv_err cv_db_commit(struct cv_db *db, struct cv_why *why);
/* Also after a begin or commit that failed; resets all statements. Does nothing outside a transaction. */
void cv_db_rollback(struct cv_db *db);

/*
 * A prepared statement, cached by the address of its text (a string literal) and reset when asked for again. Bind with
 * sqlite3_bind_*, then cv_db_step or cv_db_run.
 */
CV_MUST_USE enum cv_err cv_db_prepare(struct cv_db *db, const char *sql, sqlite3_stmt **ret, struct cv_why *why);
/* CV_OK with *ret_row = 1 for a row, 0 at the end (the statement is reset then). */
CV_MUST_USE enum cv_err cv_db_step(struct cv_db *db, sqlite3_stmt *stmt, int *ret_row, struct cv_why *why);
/* Runs to the end and resets; rows are an error. */
CV_MUST_USE enum cv_err cv_db_run(struct cv_db *db, sqlite3_stmt *stmt, struct cv_why *why);

#endif
