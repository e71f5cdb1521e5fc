/* SPDX-License-Identifier: Apache-2.0 */
#include "common/db/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/db/db_hook.h"

struct cv_db_copy {
  struct cv_db *db;
  sqlite3 *handle; /* of the copy */
  sqlite3_backup *backup;
  int fd; /* the copy's file, which has no name any more; -1: taken */
};

/* The copy is nobody's until it is whole, so it needs neither a journal nor a sync, and little memory. */
static const char settings[] =
    "PRAGMA locking_mode = EXCLUSIVE;"
    "PRAGMA journal_mode = OFF;"
    "PRAGMA synchronous = OFF;"
    "PRAGMA cache_size = -1024;";

/* A full disk would stop the daemon at its next commit, so the copy gives up before. */
static enum cv_err check_space(const struct cv_db_copy *copy, uint64_t needed, struct cv_why *why) {
  struct statvfs disk;
  if (fstatvfs(copy->fd, &disk) != 0) {
    return CV_OK; /* not every file system can tell */
  }
  uint64_t space = (uint64_t)disk.f_bavail * disk.f_frsize;
  return space >= needed + CV_DB_COPY_RESERVE_BYTES
             ? CV_OK
             : cv_fail(why, CV_ERR_LIMIT, "%s: not enough space for a copy beside it: %llu MiB free; expected %llu",
                       cv_db_path(copy->db), (unsigned long long)(space >> 20),
                       (unsigned long long)((needed + CV_DB_COPY_RESERVE_BYTES) >> 20) + 1);
}

static enum cv_err fail(const struct cv_db_copy *copy, int code, struct cv_why *why) {
  return cv_fail(why, code == SQLITE_NOMEM ? CV_ERR_NOMEM : CV_ERR_IO, "%s: cannot copy: %s", cv_db_path(copy->db),
                 sqlite3_errstr(code));
}

/* Two descriptors of one new file: SQLite's, and ours to read it. Then the name goes. */
static enum cv_err open_file(struct cv_db_copy *copy, const char *path, struct cv_why *why) {
  (void)unlink(path); /* left by a process that ended just here */
  copy->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (copy->fd < 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot create: %s", path, strerror(errno));
  }
  int code =
      sqlite3_open_v2(path, &copy->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
  if (code == SQLITE_OK) {
    code = sqlite3_exec(copy->handle, settings, NULL, NULL, NULL);
  }
  (void)unlink(path);
  return code == SQLITE_OK ? CV_OK : fail(copy, code, why);
}

/* The pages that the database has now; it may grow meanwhile, so each step looks at the space again. */
static enum cv_err measure(struct cv_db_copy *copy, uint64_t *ret_bytes, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(copy->db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", &stmt, why));
  CV_TRY(cv_db_step(copy->db, stmt, &row, why));
  *ret_bytes = row == 0 ? 0 : (uint64_t)sqlite3_column_int64(stmt, 0);
  (void)sqlite3_reset(stmt);
  return CV_OK;
}

static enum cv_err begin(struct cv_db_copy *copy, const char *path, struct cv_why *why) {
  uint64_t bytes = 0;
  CV_TRY(open_file(copy, path, why));
  CV_TRY(measure(copy, &bytes, why));
  CV_TRY(check_space(copy, bytes, why));
  copy->backup = sqlite3_backup_init(copy->handle, "main", cv_db_handle(copy->db), "main");
  return copy->backup != NULL ? CV_OK : fail(copy, sqlite3_errcode(copy->handle), why);
}

enum cv_err cv_db_copy_begin(struct cv_db *db, const char *path, struct cv_db_copy **ret, struct cv_why *why) {
  struct cv_db_copy *copy = calloc(1, sizeof(*copy));
  if (copy == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path);
  }
  *copy = (struct cv_db_copy){.db = db, .fd = -1};
  enum cv_err err = begin(copy, path, why);
  if (err != CV_OK) {
    cv_db_copy_end(copy);
    return err;
  }
  *ret = copy;
  return CV_OK;
}

/* Bytes 18 and 19 of a database say whether it has a log (2) or a journal (1). The copy has neither, and a reader of
 * one that names a log would create one. */
static enum cv_err name_no_log(struct cv_db_copy *copy, struct cv_why *why) {
  static const uint8_t journal[] = {1, 1};
  return pwrite(copy->fd, journal, sizeof(journal), 18) == (ssize_t)sizeof(journal) ? CV_OK
                                                                                    : fail(copy, SQLITE_IOERR, why);
}

static enum cv_err finish(struct cv_db_copy *copy, struct cv_why *why) {
  int code = sqlite3_backup_finish(copy->backup);
  copy->backup = NULL;
  if (code == SQLITE_OK) {
    code = sqlite3_close(copy->handle);
    copy->handle = NULL;
  }
  return code == SQLITE_OK ? name_no_log(copy, why) : fail(copy, code, why);
}

enum cv_err cv_db_copy_step(struct cv_db_copy *copy, int pages, bool *ret_done, struct cv_why *why) {
  CV_TRY(check_space(copy, 0, why));
  int code = sqlite3_backup_step(copy->backup, pages);
  if (code != SQLITE_OK && code != SQLITE_DONE) {
    return fail(copy, code, why);
  }
  *ret_done = code == SQLITE_DONE;
  return code == SQLITE_DONE ? finish(copy, why) : CV_OK;
}

int cv_db_copy_take(struct cv_db_copy *copy, uint64_t *ret_bytes) {
  struct stat info = {0};
  int fd = copy->fd;
  (void)fstat(fd, &info);
  *ret_bytes = (uint64_t)info.st_size;
  copy->fd = -1;
  return fd;
}

void cv_db_copy_end(struct cv_db_copy *copy) {
  if (copy == NULL) {
    return;
  }
  (void)sqlite3_backup_finish(copy->backup); /* NULL does nothing; an error was returned by the last step */
  (void)sqlite3_close(copy->handle);
  if (copy->fd >= 0) {
    (void)close(copy->fd);
  }
  free(copy);
}
