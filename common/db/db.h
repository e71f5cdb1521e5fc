/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite as the daemons use it: WAL, synchronous FULL, temporary data in memory, foreign keys on, freed pages
 * overwritten. Only this module maps SQLite's codes to enum cv_err: CV_ERR_DAMAGED for a corrupt file, CV_ERR_STATE for
 * a file locked by another process, CV_ERR_EXISTS for a duplicate key, CV_ERR_INVALID for any other violated
 * constraint, CV_ERR_DENIED for missing permissions, CV_ERR_IO for the disk.
 *
 * A database open for writing is locked against all other processes, including readers. Only one thread may use a
 * database at a time; not necessarily always the same thread.
 */
#ifndef CV_DB_H
#define CV_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct cv_db;

/* The first step makes a new database of version `first`; step i takes one from version first + i - 1 to first + i. */
struct cv_db_schema {
  uint32_t application_id; /* a database with another id is refused */
  const char *const *steps;
  int count;
  int first;          /* an earlier version is refused, as a file of a program before 0.3.0 */
  const char *advice; /* what to do with such a file */
};

/*
 * Opens or creates a database (`vfs` NULL: the default), checks its application id, version and integrity, and applies
 * the missing schema steps. Fails with one line in `why` for a missing folder, a file that is not a database, another
 * program's database or a version that it does not know. CV_ERR_DAMAGED if `quick_check` fails. A refused file is not
 * changed. The file gets mode 0600.
 */
CV_MUST_USE enum cv_err cv_db_open(const char *path, const char *vfs, const struct cv_db_schema *schema,
                                   struct cv_db **ret, struct cv_why *why);
/* Opens a database for reading only: the file must exist, have the last version, and not be open for writing. */
CV_MUST_USE enum cv_err cv_db_open_readonly(const char *path, const struct cv_db_schema *schema, struct cv_db **ret,
                                            struct cv_why *why);
void cv_db_close(struct cv_db *db);

/*
 * From now on `step` is called after about every 10,000 steps of SQLite's machine, in every database of the process, on
 * the thread that uses the database: as a sign that work on it goes on. NULL: no calls.
 */
void cv_db_on_step(void (*step)(void *data), void *data);

/* Runs statements without results. All functions here return the mapped error, with the file's path in `why`. */
CV_MUST_USE enum cv_err cv_db_exec(struct cv_db *db, const char *sql, struct cv_why *why);
/* Begins a transaction: for writing, unless the database is open for reading only. */
CV_MUST_USE enum cv_err cv_db_begin(struct cv_db *db, struct cv_why *why);
/* CV_OK: the transaction is on disk. After an error it may or may not be on disk. */
CV_MUST_USE enum cv_err cv_db_commit(struct cv_db *db, struct cv_why *why);
/* Rolls back and resets all statements; also after a failed begin or commit. Does nothing outside a transaction. */
void cv_db_rollback(struct cv_db *db);

/*
 * A prepared statement, cached by the address of its text (a string literal) and reset when asked for again. Bind with
 * sqlite3_bind_*, then cv_db_step or cv_db_run.
 */
CV_MUST_USE enum cv_err cv_db_prepare(struct cv_db *db, const char *sql, sqlite3_stmt **ret, struct cv_why *why);
/* CV_OK with *ret_row = 1 for a row, or 0 at the end, where the statement is reset. */
CV_MUST_USE enum cv_err cv_db_step(struct cv_db *db, sqlite3_stmt *stmt, int *ret_row, struct cv_why *why);
/* Runs to the end and resets; rows are an error. */
CV_MUST_USE enum cv_err cv_db_run(struct cv_db *db, sqlite3_stmt *stmt, struct cv_why *why);

#endif
