/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/spill.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stddef.h>
#include <threads.h>

/* A temporary file; the usual VFS's own follows, aligned as SQLite aligns: for numbers of 64 bits. */
struct file {
  sqlite3_file base;
  sqlite3_int64 size;
  unsigned char inner[];
};

static atomic_ullong held, bound;
static sqlite3_vfs bounded;
static int registered = SQLITE_ERROR;

static sqlite3_file *inner_of(sqlite3_file *base) {
  return (sqlite3_file *)(void *)((struct file *)base)->inner;
}

static void resize(struct file *file, sqlite3_int64 size) {
  held += (unsigned long long)(size - file->size);
  file->size = size;
}

static int close_file(sqlite3_file *base) {
  resize((struct file *)base, 0);
  return inner_of(base)->pMethods->xClose(inner_of(base));
}

static int read_file(sqlite3_file *base, void *to, int n, sqlite3_int64 at) {
  return inner_of(base)->pMethods->xRead(inner_of(base), to, n, at);
}

static int write_file(sqlite3_file *base, const void *from, int n, sqlite3_int64 at) {
  struct file *file = (struct file *)base;
  if (at + n > file->size) {
    if (held + (unsigned long long)(at + n - file->size) > bound) {
      return SQLITE_FULL;
    }
    resize(file, at + n);
  }
  return inner_of(base)->pMethods->xWrite(inner_of(base), from, n, at);
}

static int truncate_file(sqlite3_file *base, sqlite3_int64 size) {
  struct file *file = (struct file *)base;
  if (size < file->size) {
    resize(file, size);
  }
  return inner_of(base)->pMethods->xTruncate(inner_of(base), size);
}

static int sync_file(sqlite3_file *base, int flags) {
  return inner_of(base)->pMethods->xSync(inner_of(base), flags);
}

static int size_file(sqlite3_file *base, sqlite3_int64 *ret) {
  return inner_of(base)->pMethods->xFileSize(inner_of(base), ret);
}

static int lock_file(sqlite3_file *base, int level) {
  return inner_of(base)->pMethods->xLock(inner_of(base), level);
}

static int unlock_file(sqlite3_file *base, int level) {
  return inner_of(base)->pMethods->xUnlock(inner_of(base), level);
}

static int check_lock(sqlite3_file *base, int *ret) {
  return inner_of(base)->pMethods->xCheckReservedLock(inner_of(base), ret);
}

/* No hints: one would make the file larger beside write_file(). */
static int control_file(sqlite3_file *base, int what, void *value) {
  return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *base) {
  return inner_of(base)->pMethods->xSectorSize(inner_of(base));
}

static int traits(sqlite3_file *base) {
  return inner_of(base)->pMethods->xDeviceCharacteristics(inner_of(base));
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *ret_flags) {
  static const sqlite3_io_methods methods = {.iVersion = 1, /* no mapping into memory */
                                             .xClose = close_file,
                                             .xRead = read_file,
                                             .xWrite = write_file,
                                             .xTruncate = truncate_file,
                                             .xSync = sync_file,
                                             .xFileSize = size_file,
                                             .xLock = lock_file,
                                             .xUnlock = unlock_file,
                                             .xCheckReservedLock = check_lock,
                                             .xFileControl = control_file,
                                             .xSectorSize = sector_size,
                                             .xDeviceCharacteristics = traits};
  sqlite3_vfs *usual = vfs->pAppData;
  struct file *file = (struct file *)base;
  if (name != NULL) {
    return usual->xOpen(usual, name, base, flags, ret_flags);
  }
  file->size = 0;
  int code = usual->xOpen(usual, NULL, inner_of(base), flags, ret_flags);
  base->pMethods = inner_of(base)->pMethods == NULL ? NULL : &methods;
  return code;
}

/* The usual functions that take the VFS itself get the usual one. */
static int delete_file(sqlite3_vfs *vfs, const char *name, int sync) {
  sqlite3_vfs *usual = vfs->pAppData;
  return usual->xDelete(usual, name, sync);
}

static int access_file(sqlite3_vfs *vfs, const char *name, int flags, int *ret) {
  sqlite3_vfs *usual = vfs->pAppData;
  return usual->xAccess(usual, name, flags, ret);
}

static int full_name(sqlite3_vfs *vfs, const char *name, int size, char *to) {
  sqlite3_vfs *usual = vfs->pAppData;
  return usual->xFullPathname(usual, name, size, to);
}

static void make(void) {
  sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
  if (usual == NULL) {
    return;
  }
  bounded = *usual;
  bounded.zName = "crowdveil-query";
  bounded.pNext = NULL;
  bounded.pAppData = usual;
  bounded.szOsFile = (int)sizeof(struct file) + usual->szOsFile;
  bounded.xOpen = open_file;
  bounded.xDelete = delete_file;
  bounded.xAccess = access_file;
  bounded.xFullPathname = full_name;
  registered = sqlite3_vfs_register(&bounded, 0);
}

const char *cv_spill_vfs(uint64_t most) {
  static once_flag once = ONCE_FLAG_INIT;
  call_once(&once, make);
  bound = most;
  return registered == SQLITE_OK ? bounded.zName : NULL;
}
