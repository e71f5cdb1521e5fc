/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening reads and checks the file before it changes anything. A writer locks the file for as long as it is open, so
 * that no second process reads a live database.
 */
#include "common/db/db.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/before.h"
#include "common/db/db_hook.h"

enum {
  BUSY_MS = 500, /* waits for a closing predecessor; a running one keeps its lock */
  APPLICATION_ID_SQL_BYTES = 64,
  STEPS = 10000, /* of SQLite's machine between two reports */
};

struct statement {
  const char *sql; /* the address is the key */
  sqlite3_stmt *stmt;
};

struct cv_db {
  sqlite3 *handle;
  char *path;
  const struct cv_db_schema *schema; /* borrowed */
  bool readonly;
  bool is_file;                  /* in the default VFS, where we set the file's mode */
  bool is_doubtful;              /* the log may not be durable: found at the start, or after a failed commit */
  const struct cv_db_hook *hook; /* NULL: the rows have no codes */
  void *hook_data;
  struct statement *statement;
  size_t statements, statements_cap;
};

static void (*on_step)(void *data);
static void *on_step_data;

void cv_db_on_step(void (*step)(void *data), void *data) {
  on_step = step;
  on_step_data = data;
}

static int report_step(void *data) {
  if (on_step != NULL) {
    on_step(on_step_data);
  }
  return 0; /* go on */
}

sqlite3 *cv_db_handle(struct cv_db *db) {
  return db->handle;
}

const struct cv_db_schema *cv_db_schema(const struct cv_db *db) {
  return db->schema;
}

const char *cv_db_path(const struct cv_db *db) {
  return db->path;
}

bool cv_db_is_readonly(const struct cv_db *db) {
  return db->readonly;
}

void cv_db_set_hook(struct cv_db *db, const struct cv_db_hook *hook, void *data) {
  CV_REQUIRE(db->hook == NULL);
  db->hook = hook;
  db->hook_data = data;
}

void *cv_db_hook_data(struct cv_db *db) {
  return db->hook_data;
}

/* Constraint violations are told apart by their extended codes, all other errors by the low byte. */
static enum cv_err from_sqlite(int code) {
  if (code == SQLITE_IOERR_NOMEM) {
    return CV_ERR_NOMEM;
  }
  if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY || code == SQLITE_CONSTRAINT_ROWID) {
    return CV_ERR_EXISTS;
  }
  switch (code & 0xff) {
    case SQLITE_OK:
      return CV_OK;
    case SQLITE_NOMEM:
      return CV_ERR_NOMEM;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return CV_ERR_DAMAGED;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return CV_ERR_STATE;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return CV_ERR_DENIED;
    case SQLITE_IOERR:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
      return CV_ERR_IO;
    case SQLITE_TOOBIG:
      return CV_ERR_LIMIT;
    case SQLITE_CONSTRAINT:
      return CV_ERR_INVALID;
    default:
      return CV_ERR_DB;
  }
}

/* What SQLite calls an I/O error has a cause that it keeps with the file, the database or its log; 0: it knows none. */
static int cause_of(struct cv_db *db) {
  sqlite3_file *log = NULL;
  int cause = 0;
  (void)sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_LAST_ERRNO, &cause);
  if (cause == 0 && sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, (void *)&log) == SQLITE_OK &&
      log != NULL && log->pMethods != NULL) {
    (void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &cause);
  }
  return cause;
}

static enum cv_err fail_io(struct cv_db *db, int code, struct cv_why *why) {
  int cause = (code & 0xff) == SQLITE_IOERR ? cause_of(db) : 0;
  return cv_fail(why, CV_ERR_IO, "%s: %s%s%s", db->path, sqlite3_errmsg(db->handle), cause == 0 ? "" : ": ",
                 cause == 0 ? "" : strerror(cause));
}

/* Maps the handle's last error and writes its message. */
enum cv_err cv_db_failed(struct cv_db *db, int code, struct cv_why *why) {
  enum cv_err err = from_sqlite(code);
  switch (err) {
    case CV_ERR_DAMAGED:
      return cv_fail(why, err, "%s: damaged or not a database: %s", db->path, sqlite3_errmsg(db->handle));
    case CV_ERR_IO:
      return fail_io(db, code, why);
    case CV_ERR_NOMEM: /* SQLite's message names only the operation */
      return cv_fail(why, err, "%s: out of memory", db->path);
    case CV_ERR_STATE:
      return cv_fail(why, err, "%s: in use by a running program; ask that program, or stop it first", db->path);
    default:
      return cv_fail(why, err, "%s: %s", db->path, sqlite3_errmsg(db->handle));
  }
}

enum cv_err cv_db_exec(struct cv_db *db, const char *sql, struct cv_why *why) {
  int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
  return code == SQLITE_OK ? CV_OK : cv_db_failed(db, code, why);
}

static enum cv_err remember(struct cv_db *db, const char *sql, sqlite3_stmt *stmt) {
  CV_TRY(CV_ARRAY_ROOM(db->statement, db->statements + 1, db->statements_cap));
  db->statement[db->statements++] = (struct statement){.sql = sql, .stmt = stmt};
  return CV_OK;
}

enum cv_err cv_db_prepare(struct cv_db *db, const char *sql, sqlite3_stmt **ret, struct cv_why *why) {
  for (size_t i = 0; i < db->statements; i++) {
    /* Compared by address: every statement is a literal, and few enough for a linear search. */
    if (db->statement[i].sql == sql) {
      /* The error of an earlier run was already returned. */
      (void)sqlite3_reset(db->statement[i].stmt);
      (void)sqlite3_clear_bindings(db->statement[i].stmt);
      *ret = db->statement[i].stmt;
      return CV_OK;
    }
  }
  sqlite3_stmt *stmt = NULL;
  int code = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
  if (code != SQLITE_OK) {
    return cv_db_failed(db, code, why);
  }
  CV_REQUIRE(stmt != NULL); /* NULL only for an empty text */
  if (remember(db, sql, stmt) != CV_OK) {
    (void)sqlite3_finalize(stmt);
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", db->path);
  }
  *ret = stmt;
  return CV_OK;
}

enum cv_err cv_db_step(struct cv_db *db, sqlite3_stmt *stmt, int *ret_row, struct cv_why *why) {
  int code = sqlite3_step(stmt);
  if (code == SQLITE_ROW) {
    *ret_row = 1;
    return CV_OK;
  }
  enum cv_err err = code == SQLITE_DONE ? CV_OK : cv_db_failed(db, code, why);
  (void)sqlite3_reset(stmt);
  if (err == CV_OK) {
    *ret_row = 0;
  }
  return err;
}

enum cv_err cv_db_run(struct cv_db *db, sqlite3_stmt *stmt, struct cv_why *why) {
  int row = 0;
  CV_TRY(cv_db_step(db, stmt, &row, why));
  if (row == 0) {
    return CV_OK;
  }
  (void)sqlite3_reset(stmt);
  return cv_fail(why, CV_ERR_DB, "%s: a statement that should give no rows gave one: %s", db->path, sqlite3_sql(stmt));
}

static enum cv_err run_text(struct cv_db *db, const char *sql, struct cv_why *why) {
  sqlite3_stmt *stmt = NULL;
  CV_TRY(cv_db_prepare(db, sql, &stmt, why));
  return cv_db_run(db, stmt, why);
}

enum cv_err cv_db_begin(struct cv_db *db, struct cv_why *why) {
  static const char reading[] = "BEGIN", writing[] = "BEGIN IMMEDIATE";
  return run_text(db, db->readonly ? reading : writing, why);
}

enum cv_err cv_db_commit(struct cv_db *db, struct cv_why *why) {
  static const char sql[] = "COMMIT";
  /* Inside the transaction: codes and rows are stored together or not at all. */
  CV_TRY(db->hook != NULL ? db->hook->committing(db->hook_data, why) : CV_OK);
  enum cv_err err = run_text(db, sql, why);
  /* After a failed COMMIT the transaction may be in the log, durable or not. */
  db->is_doubtful = db->is_doubtful || err != CV_OK;
  if (err == CV_OK && db->hook != NULL) {
    db->hook->committed(db->hook_data);
  }
  return err;
}

void cv_db_rollback(struct cv_db *db) {
  for (size_t i = 0; i < db->statements; i++) {
    (void)sqlite3_reset(db->statement[i].stmt);
  }
  if (db->hook != NULL) {
    db->hook->rolled_back(db->hook_data);
  }
  /* After some errors SQLite has already rolled back. A failed rollback leaves a log that is never replayed. */
  if (sqlite3_get_autocommit(db->handle) == 0) {
    (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
  }
}

void cv_db_close(struct cv_db *db) {
  if (db == NULL) {
    return;
  }
  for (size_t i = 0; i < db->statements; i++) {
    (void)sqlite3_finalize(db->statement[i].stmt);
  }
  if (db->is_doubtful && db->handle != NULL) { /* keep the log: the next start makes it durable first */
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
  }
  (void)sqlite3_close_v2(db->handle);
  if (db->hook != NULL) {
    db->hook->closed(db->hook_data); /* after the handle, whose preupdate hook and SQL function use the data */
  }
  free(db->statement);
  free(db->path);
  free(db);
}

/* Reads the first column of the first row. */
static enum cv_err ask_number(struct cv_db *db, const char *sql, int64_t *ret, struct cv_why *why) {
  sqlite3_stmt *stmt = NULL;
  int code = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
  if (code == SQLITE_OK) {
    code = sqlite3_step(stmt);
  }
  enum cv_err err = code == SQLITE_ROW ? CV_OK : cv_db_failed(db, code, why);
  if (err == CV_OK) {
    *ret = sqlite3_column_int64(stmt, 0);
  }
  (void)sqlite3_finalize(stmt);
  return err;
}

static enum cv_err check_pages(struct cv_db *db, struct cv_why *why) {
  sqlite3_stmt *stmt = NULL;
  int code = sqlite3_prepare_v2(db->handle, "PRAGMA quick_check(1)", -1, &stmt, NULL);
  if (code == SQLITE_OK) {
    code = sqlite3_step(stmt);
  }
  enum cv_err err = CV_OK;
  if (code != SQLITE_ROW) {
    err = cv_db_failed(db, code, why);
  } else {
    const char *found = (const char *)sqlite3_column_text(stmt, 0);
    /* It tells of memory that it could not have, code 7, as of a page. */
    if (found == NULL || strstr(found, "error code=7") != NULL) {
      err = cv_db_failed(db, SQLITE_NOMEM, why);
    } else if (strcmp(found, "ok") != 0) {
      err = cv_fail(why, CV_ERR_DAMAGED, "%s: damaged database: %.200s", db->path, found);
    }
  }
  (void)sqlite3_finalize(stmt);
  /* SQLite's findings have several lines; a message is one. */
  for (char *c = why != NULL && err != CV_OK ? why->text : NULL; c != NULL && *c != '\0'; c++) {
    if (*c == '\n') {
      *c = ' ';
    }
  }
  return err;
}

static int last_version(const struct cv_db_schema *schema) {
  return schema->first + schema->count - 1;
}

/* Checks application id, version and integrity. Reads only. *ret_version is 0 for an empty database. */
static enum cv_err inspect(struct cv_db *db, const struct cv_db_schema *schema, int *ret_version, struct cv_why *why) {
  int64_t application = 0, version = 0, tables = 0;
  CV_TRY(ask_number(db, "PRAGMA application_id", &application, why));
  CV_TRY(ask_number(db, "PRAGMA user_version", &version, why));
  CV_TRY(ask_number(db, "SELECT count(*) FROM sqlite_schema", &tables, why));
  /* A file that was created and never written: the first start may have stopped there. */
  bool is_empty = application == 0 && version == 0 && tables == 0;
  if ((uint32_t)application != schema->application_id && !(is_empty && !db->readonly)) {
    return cv_fail(why, CV_ERR_INVALID, "%s: a database of another program (application id 0x%08x); expected 0x%08x",
                   db->path, (unsigned)(uint32_t)application, (unsigned)schema->application_id);
  }
  if (version > last_version(schema)) {
    return cv_fail(why, CV_ERR_VERSION, "%s: schema version %lld of a later release; expected at most %d", db->path,
                   (long long)version, last_version(schema));
  }
  if (version < schema->first && !is_empty) {
    return cv_fail(why, CV_ERR_VERSION, "%s: schema version %lld, " CV_BEFORE "; %s", db->path, (long long)version,
                   schema->advice);
  }
  if (db->readonly && version < last_version(schema)) {
    return cv_fail(why, CV_ERR_VERSION, "%s: schema version %lld; expected %d (the daemon brings it up to date)",
                   db->path, (long long)version, last_version(schema));
  }
  CV_TRY(check_pages(db, why));
  *ret_version = (int)version;
  return CV_OK;
}

static enum cv_err set_number(struct cv_db *db, const char *pragma, int64_t value, struct cv_why *why) {
  char sql[APPLICATION_ID_SQL_BYTES];
  (void)sqlite3_snprintf((int)sizeof(sql), sql, "PRAGMA %s = %lld", pragma, (long long)value);
  return cv_db_exec(db, sql, why);
}

static enum cv_err apply_steps(struct cv_db *db, const struct cv_db_schema *schema, int version, struct cv_why *why) {
  for (int i = version == 0 ? 0 : version - schema->first + 1; i < schema->count; i++) {
    enum cv_err err = cv_db_exec(db, schema->steps[i], why);
    if (err != CV_OK) {
      cv_why_prefix(why, "schema step to version %d", schema->first + i);
      return err;
    }
  }
  /* An application id uses all 32 bits; the pragma takes a signed number. */
  CV_TRY(set_number(db, "application_id", (int32_t)schema->application_id, why));
  return set_number(db, "user_version", last_version(schema), why);
}

/* Runs all missing steps in one transaction: a database has the old version or the new one, never one between. */
static enum cv_err migrate(struct cv_db *db, const struct cv_db_schema *schema, int version, struct cv_why *why) {
  int64_t application = 0;
  CV_TRY(ask_number(db, "PRAGMA application_id", &application, why));
  /* Nothing to do is the usual case, and then nothing is written. */
  if (version == last_version(schema) && (uint32_t)application == schema->application_id) {
    return CV_OK;
  }
  CV_TRY(cv_db_begin(db, why));
  enum cv_err err = apply_steps(db, schema, version, why);
  if (err == CV_OK) {
    err = cv_db_commit(db, why);
  }
  if (err != CV_OK) {
    cv_db_rollback(db);
  }
  return err;
}

/*
 * Autocheckpoint at 4000 pages (16 MiB): at 2000 commits per second of two to four pages each, about twice a second;
 * pages that change repeatedly are copied to the database once. The size limit shrinks a log that has grown.
 *
 * A new database switches to WAL in a transaction with a rollback journal. Only EXTRA makes the deletion of that
 * journal durable: if the journal reappeared after a power failure, it would undo the new database, and the log with
 * it.
 */
static const char writer_settings[] =
    "PRAGMA synchronous = EXTRA;"
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = FULL;"
    "PRAGMA secure_delete = ON;"
    "PRAGMA wal_autocheckpoint = 4000;"
    "PRAGMA journal_size_limit = 67108864;";

static const char common_settings[] =
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA foreign_keys = ON;"
    "PRAGMA trusted_schema = OFF;"
    "PRAGMA cell_size_check = ON;";

/*
 * After a failed sync the kernel marks the unwritten pages as clean: the log reads well, no later sync writes it, and
 * data copied from it into the database could reach the disk partially. So the log found at the start is rewritten byte
 * for byte and synced before anything depends on it.
 */
static enum cv_err renew_log(struct cv_db *db, struct cv_why *why) {
  uint8_t bytes[4096];
  sqlite3_file *log = NULL;
  sqlite3_int64 size = 0;
  int code = sqlite3_file_control(db->handle, NULL, SQLITE_FCNTL_JOURNAL_POINTER, (void *)&log);
  if (code != SQLITE_OK || log == NULL || log->pMethods == NULL) { /* there is no log */
    return CV_OK;
  }
  code = log->pMethods->xFileSize(log, &size);
  for (sqlite3_int64 at = 0; code == SQLITE_OK && at < size; at += (sqlite3_int64)sizeof(bytes)) {
    int n = size - at < (sqlite3_int64)sizeof(bytes) ? (int)(size - at) : (int)sizeof(bytes);
    code = log->pMethods->xRead(log, bytes, n, at);
    code = code == SQLITE_OK ? log->pMethods->xWrite(log, bytes, n, at) : code;
  }
  if (code == SQLITE_OK && size > 0) {
    code = log->pMethods->xSync(log, SQLITE_SYNC_FULL);
  }
  return code == SQLITE_OK
             ? CV_OK
             : cv_fail(why, from_sqlite(code), "%s: cannot renew the log: %s", db->path, sqlite3_errstr(code));
}

static enum cv_err set_up(struct cv_db *db, const struct cv_db_schema *schema, struct cv_why *why) {
  int version = 0;
  (void)sqlite3_busy_timeout(db->handle, BUSY_MS);
  /* Our schemas have no triggers: one added to the file would run with our writes. */
  (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  if (!db->readonly) {
    /* Before the first access, which then takes the lock and keeps it; WAL needs no shared memory file with it. */
    CV_TRY(cv_db_exec(db, "PRAGMA locking_mode = EXCLUSIVE", why));
  }
  CV_TRY(cv_db_exec(db, common_settings, why));
  /* All checks come before the first change: a refused file is left as it was found. */
  CV_TRY(inspect(db, schema, &version, why));
  if (db->readonly) {
    return CV_OK;
  }
  /* By name: closing another descriptor of the file would release our locks on it. The log inherits the mode. */
  if (db->is_file && chmod(db->path, 0600) != 0) {
    return cv_fail(why, CV_ERR_DENIED, "%s: cannot set mode 0600: %s", db->path, strerror(errno));
  }
  CV_TRY(renew_log(db, why));
  CV_TRY(cv_db_exec(db, writer_settings, why));
  CV_TRY(migrate(db, schema, version, why));
  /* The last commit of a killed process may be in the log without being durable: nothing may depend on it yet. */
  return cv_db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", why);
}

static enum cv_err open_with(const char *path, const char *vfs, int flags, const struct cv_db_schema *schema,
                             struct cv_db **ret, struct cv_why *why) {
  struct cv_db *db = calloc(1, sizeof(*db));
  char *copy = strdup(path);
  if (db == NULL || copy == NULL) {
    free(db);
    free(copy);
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path);
  }
  db->path = copy;
  db->schema = schema;
  db->readonly = (flags & SQLITE_OPEN_READONLY) != 0;
  db->is_file = vfs == NULL;
  /* Until all of the opening has succeeded. */
  db->is_doubtful = true;
  flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
  int code = sqlite3_open_v2(path, &db->handle, flags, vfs);
  if (code == SQLITE_OK) {
    sqlite3_progress_handler(db->handle, STEPS, report_step, NULL);
  }
  enum cv_err err = code == SQLITE_OK ? set_up(db, schema, why) : cv_db_failed(db, code, why);
  if (err != CV_OK) {
    cv_db_close(db);
    return err;
  }
  db->is_doubtful = false;
  *ret = db;
  return CV_OK;
}

/* Sets *ret_exists; fails if the path is not a regular file or cannot be read. */
static enum cv_err look(const char *path, bool *ret_exists, struct cv_why *why) {
  struct stat info;
  if (stat(path, &info) == 0) {
    if (!S_ISREG(info.st_mode)) {
      return cv_fail(why, CV_ERR_INVALID, "%s: not a regular file; expected a database", path);
    }
    *ret_exists = true;
    return CV_OK;
  }
  if (errno != ENOENT) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  *ret_exists = false;
  return CV_OK;
}

/* Creates an empty file, which is a valid empty database, with mode 0600 from the start. */
static enum cv_err create_private(const char *path, struct cv_why *why) {
  char *copy = strdup(path);
  if (copy == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path);
  }
  const char *folder = dirname(copy);
  enum cv_err err = CV_OK;
  /* The folder is synced as well: a file that is not in its folder after a power failure is lost with its content. */
  int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int fd = folder_fd < 0 ? -1 : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (folder_fd < 0) {
    err = cv_fail(why, errno == ENOENT ? CV_ERR_NOT_FOUND : CV_ERR_IO, "%s: folder %s: %s", path, folder,
                  strerror(errno));
  } else if (fd < 0 || fchmod(fd, 0600) != 0 || fsync(fd) != 0 || fsync(folder_fd) != 0) {
    err = cv_fail(why, CV_ERR_IO, "%s: cannot create the database: %s", path, strerror(errno));
  }
  if (fd >= 0) {
    (void)close(fd);
  }
  if (folder_fd >= 0) {
    (void)close(folder_fd);
  }
  free(copy);
  return err;
}

enum cv_err cv_db_open(const char *path, const char *vfs, const struct cv_db_schema *schema, struct cv_db **ret,
                       struct cv_why *why) {
  /* The caller's VFS decides where it stores files. */
  if (vfs == NULL) {
    bool exists = false;
    CV_TRY(look(path, &exists, why));
    if (!exists) {
      CV_TRY(create_private(path, why));
    }
  }
  return open_with(path, vfs, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, schema, ret, why);
}

enum cv_err cv_db_open_readonly(const char *path, const struct cv_db_schema *schema, struct cv_db **ret,
                                struct cv_why *why) {
  bool exists = false;
  CV_TRY(look(path, &exists, why));
  if (!exists) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: no such database", path);
  }
  return open_with(path, NULL, SQLITE_OPEN_READONLY, schema, ret, why);
}
