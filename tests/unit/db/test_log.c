/* SPDX-License-Identifier: Apache-2.0 */
/* A log whose sync has failed: a VFS in front of the system's records the calls, and fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/db/db.h"
#include "tests/support/folder.h"

static const char *const steps[] = {"CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"};
static const struct cv_db_schema schema = {.application_id = 0x43560001, .steps = steps, .first = 1, .count = 1};

static struct {
  int fail_syncs;           /* of the log, so many */
  uint64_t log_bytes;       /* written */
  bool log_synced;          /* since then */
  uint64_t database_writes; /* and those while the log was not synced */
  uint64_t early_writes;
} seen;

struct handle {
  sqlite3_file base;
  bool is_log;
  sqlite3_file *under;
};

static sqlite3_file *under(sqlite3_file *file) {
  return ((struct handle *)file)->under;
}

static int x_close(sqlite3_file *file) {
  int code = under(file)->pMethods->xClose(under(file));
  free(under(file));
  return code;
}

static int x_read(sqlite3_file *file, void *to, int n, sqlite3_int64 at) {
  return under(file)->pMethods->xRead(under(file), to, n, at);
}

static int x_write(sqlite3_file *file, const void *from, int n, sqlite3_int64 at) {
  if (((struct handle *)file)->is_log) {
    seen.log_bytes += (uint64_t)n;
    seen.log_synced = false;
  } else {
    seen.database_writes++;
    seen.early_writes += !seen.log_synced;
  }
  return under(file)->pMethods->xWrite(under(file), from, n, at);
}

static int x_truncate(sqlite3_file *file, sqlite3_int64 n) {
  return under(file)->pMethods->xTruncate(under(file), n);
}

static int x_sync(sqlite3_file *file, int flags) {
  if (((struct handle *)file)->is_log && seen.fail_syncs > 0) {
    seen.fail_syncs--;
    return SQLITE_IOERR_FSYNC;
  }
  seen.log_synced = seen.log_synced || ((struct handle *)file)->is_log;
  return under(file)->pMethods->xSync(under(file), flags);
}

static int x_size(sqlite3_file *file, sqlite3_int64 *ret) {
  return under(file)->pMethods->xFileSize(under(file), ret);
}

static int x_lock(sqlite3_file *file, int level) {
  return under(file)->pMethods->xLock(under(file), level);
}

static int x_unlock(sqlite3_file *file, int level) {
  return under(file)->pMethods->xUnlock(under(file), level);
}

static int x_reserved(sqlite3_file *file, int *ret) {
  return under(file)->pMethods->xCheckReservedLock(under(file), ret);
}

static int x_control(sqlite3_file *file, int op, void *arg) {
  return under(file)->pMethods->xFileControl(under(file), op, arg);
}

static int x_sector(sqlite3_file *file) {
  return under(file)->pMethods->xSectorSize(under(file));
}

static int x_device(sqlite3_file *file) {
  return under(file)->pMethods->xDeviceCharacteristics(under(file));
}

static const sqlite3_io_methods methods = {.iVersion = 1,
                                           .xClose = x_close,
                                           .xRead = x_read,
                                           .xWrite = x_write,
                                           .xTruncate = x_truncate,
                                           .xSync = x_sync,
                                           .xFileSize = x_size,
                                           .xLock = x_lock,
                                           .xUnlock = x_unlock,
                                           .xCheckReservedLock = x_reserved,
                                           .xFileControl = x_control,
                                           .xSectorSize = x_sector,
                                           .xDeviceCharacteristics = x_device};

static int x_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags) {
  sqlite3_vfs *system = vfs->pAppData;
  struct handle *handle = (struct handle *)file;
  *handle = (struct handle){.is_log = (flags & SQLITE_OPEN_WAL) != 0, .under = calloc(1, (size_t)system->szOsFile)};
  assert_non_null(handle->under);
  int code = system->xOpen(system, name, handle->under, flags, ret_flags);
  if (code != SQLITE_OK) {
    free(handle->under);
    return code;
  }
  handle->base.pMethods = &methods;
  return SQLITE_OK;
}

static void put_in_front(void) {
  static sqlite3_vfs vfs;
  sqlite3_vfs *system = sqlite3_vfs_find(NULL);
  vfs = *system;
  vfs.iVersion = 1;
  vfs.zName = "seen";
  vfs.szOsFile = sizeof(struct handle);
  vfs.pAppData = system;
  vfs.xOpen = x_open;
  assert_int_equal(sqlite3_vfs_register(&vfs, 0), SQLITE_OK);
}

static struct cv_db *opened(const char *path) {
  struct cv_db *db = NULL;
  struct cv_why why;
  if (cv_db_open(path, "seen", &schema, &db, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return db;
}

static enum cv_err write_one(struct cv_db *db) {
  struct cv_why why;
  CV_TRY(cv_db_begin(db, &why));
  CV_TRY(cv_db_exec(db, "INSERT INTO note (text) VALUES ('x')", &why));
  enum cv_err err = cv_db_commit(db, &why);
  if (err != CV_OK) {
    cv_db_rollback(db);
  }
  return err;
}

/* Pages that the system counts as clean after a failed sync may be in memory only: nothing may be copied from them
 * before a sync. */
static void test_a_log_whose_sync_failed_is_made_durable_before_it_is_used(void **state) {
  struct folder folder;
  char path[320];
  folder_make(&folder);
  (void)snprintf(path, sizeof(path), "%s", folder_file(&folder, "state.db"));
  put_in_front();
  struct cv_db *db = opened(path);
  assert_int_equal(write_one(db), CV_OK);
  seen.fail_syncs = 1;
  assert_int_not_equal(write_one(db), CV_OK);
  seen.database_writes = 0;
  cv_db_close(db);
  assert_int_equal(seen.database_writes, 0); /* not when closing either */
  seen.fail_syncs = 1;
  struct cv_why why;
  assert_int_not_equal(cv_db_open(path, "seen", &schema, &db, &why), CV_OK);
  assert_int_equal(seen.database_writes, 0); /* nor by a start that fails */
  seen.log_bytes = 0;
  seen.log_synced = false;
  seen.early_writes = 0;
  db = opened(path);
  assert_true(seen.log_bytes > 2 * 4096); /* all of it again: two commits */
  assert_true(seen.database_writes > 0);
  assert_int_equal(seen.early_writes, 0);
  assert_int_equal(write_one(db), CV_OK);
  cv_db_close(db);
  folder_remove(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_log_whose_sync_failed_is_made_durable_before_it_is_used),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
