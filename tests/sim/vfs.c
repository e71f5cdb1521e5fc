/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "tests/sim/tally.h"

enum { SECTOR = 512, DISKS = 4 };

static struct disk *disks[DISKS];

static struct disk *disk_of(const char *name) {
  for (size_t i = 0; i < DISKS; i++) {
    if (disks[i] != NULL && disks[i]->letter == name[0]) {
      return disks[i];
    }
  }
  CV_REQUIRE(!"a file on a disk that does not exist");
  return NULL;
}

void disk_init(struct disk *disk, char letter) {
  *disk = (struct disk){.letter = letter};
  for (size_t i = 0; i < DISKS; i++) {
    if (disks[i] == NULL) {
      disks[i] = disk;
      return;
    }
  }
  CV_REQUIRE(!"a free entry for a disk");
}

static void file_free(struct disk_file *file) {
  free(file->now);
  free(file->durable);
  free(file->dirty);
  *file = (struct disk_file){.name = ""};
}

void disk_copy_fini(struct disk *copy) {
  for (size_t i = 0; i < DISK_FILES; i++) {
    file_free(&copy->file[i]);
  }
}

void disk_fini(struct disk *disk) {
  for (size_t i = 0; i < DISKS; i++) {
    disks[i] = disks[i] == disk ? NULL : disks[i];
  }
  disk_copy_fini(disk);
}

void disk_wipe(struct disk *disk) {
  disk_copy_fini(disk);
}

bool disk_step(struct disk *disk) {
  if (!disk->dead && disk->fuse > 0 && --disk->fuse == 0) {
    disk->dead = true;
  }
  return !disk->dead;
}

/* ---- files ---- */

static void room(uint8_t **bytes, size_t *cap, size_t n) {
  if (n <= *cap && *bytes != NULL) {
    return;
  }
  size_t more = *cap * 2 > n ? *cap * 2 : n + 4096;
  uint8_t *grown = realloc(*bytes, more);
  CV_REQUIRE(grown != NULL);
  memset(grown + *cap, 0, more - *cap);
  *bytes = grown;
  *cap = more;
}

static struct disk_file *find(struct disk *disk, const char *name, bool create) {
  struct disk_file *empty = NULL;
  for (size_t i = 0; i < DISK_FILES; i++) {
    struct disk_file *file = &disk->file[i];
    if (strcmp(file->name, name) == 0) {
      return file->exists || create ? file : NULL;
    }
    empty = empty == NULL && file->name[0] == '\0' ? file : empty;
  }
  if (create) {
    CV_REQUIRE(empty != NULL);
    (void)snprintf(empty->name, sizeof(empty->name), "%s", name);
  }
  return create ? empty : NULL;
}

const struct disk_file *disk_find(const struct disk *disk, const char *name) {
  for (size_t i = 0; i < DISK_FILES; i++) {
    if (disk->file[i].exists && strcmp(disk->file[i].name, name) == 0) {
      return &disk->file[i];
    }
  }
  return NULL;
}

static void mark(struct disk_file *file, size_t from, size_t to) {
  size_t end = (to + SECTOR - 1) / SECTOR;
  room(&file->dirty, &file->dirty_cap, end);
  for (size_t i = from / SECTOR; i < end; i++) {
    file->dirty[i] = SECTOR_DIRTY;
  }
  file->dirty_end = end > file->dirty_end ? end : file->dirty_end;
}

static void resize(struct disk_file *file, size_t n) {
  room(&file->now, &file->now_cap, n);
  if (n < file->now_n) {
    memset(file->now + n, 0, file->now_n - n);
    file->cut = file->is_cut && file->cut < n ? file->cut : n;
    file->is_cut = true;
    for (size_t i = (n + SECTOR - 1) / SECTOR; i < file->dirty_end; i++) {
      file->dirty[i] = SECTOR_CLEAN;
    }
  }
  file->now_n = n;
}

/* The truncation becomes durable. */
static void cut_off(struct disk_file *file) {
  if (file->is_cut && file->cut < file->durable_n) {
    memset(file->durable + file->cut, 0, file->durable_n - file->cut);
    file->durable_n = file->cut;
  }
  file->is_cut = false;
}

/* Makes sector i durable. */
static void settle(struct disk_file *file, size_t i) {
  room(&file->durable, &file->durable_cap, (i + 1) * SECTOR);
  room(&file->now, &file->now_cap, (i + 1) * SECTOR);
  memcpy(file->durable + i * SECTOR, file->now + i * SECTOR, SECTOR);
}

static void sync_file(struct disk_file *file) {
  cut_off(file);
  for (size_t i = 0; i < file->dirty_end; i++) {
    if (file->dirty[i] == SECTOR_DIRTY) {
      settle(file, i);
      file->dirty[i] = SECTOR_CLEAN;
    }
  }
  while (file->dirty_end > 0 && file->dirty[file->dirty_end - 1] == SECTOR_CLEAN) {
    file->dirty_end--;
  }
  room(&file->durable, &file->durable_cap, file->now_n);
  file->durable_n = file->now_n;
}

/* A sync has failed: part of its data has reached the disk, the rest never will, and no program can tell which. */
static void forget_dirty(struct disk_file *file) {
  bool forgotten = false;
  for (size_t i = 0; i < file->dirty_end; i++) {
    if (file->dirty[i] == SECTOR_DIRTY && cv_rng_below(disk_of(file->name)->rng, 3) == 0) {
      settle(file, i);
      file->dirty[i] = SECTOR_CLEAN;
    } else if (file->dirty[i] == SECTOR_DIRTY) {
      file->dirty[i] = SECTOR_FORGOTTEN;
      forgotten = true;
    }
  }
  tally_add(TALLY_SYNC_LOST, forgotten);
}

/* A write or a sync: the code to return instead of doing it, or SQLITE_OK. */
static int refuse(struct disk *disk) {
  if (!disk_step(disk)) {
    return SQLITE_IOERR;
  }
  if (disk->refuse_in > 0 && --disk->refuse_in == 0) {
    if (--disk->refuse_for > 0) {
      disk->refuse_in = 1;
    }
    disk->refusals++;
    tally(disk->refusal == DISK_IS_FULL ? TALLY_DISK_FULL : TALLY_DISK_ERROR);
    return disk->refusal == DISK_IS_FULL ? SQLITE_FULL : SQLITE_IOERR;
  }
  return SQLITE_OK;
}

static void put(struct disk_file *file, const void *from, size_t n, size_t at) {
  room(&file->now, &file->now_cap, at + n);
  memcpy(file->now + at, from, n);
  file->now_n = at + n > file->now_n ? at + n : file->now_n;
  mark(file, at, at + n);
}

static int write_file(struct disk_file *file, const void *from, size_t n, size_t at) {
  struct disk *disk = disk_of(file->name);
  int code = refuse(disk);
  if (code == SQLITE_OK) {
    disk->writes++;
    put(file, from, n, at);
  } else if (!disk->dead && n > SECTOR && cv_rng_below(disk->rng, 2) == 0) {
    tally(TALLY_DISK_SHORT);
    put(file, from, (1 + (size_t)cv_rng_below(disk->rng, (n - 1) / SECTOR)) * SECTOR, at); /* a sector is whole */
  }
  return code;
}

static int flush_file(struct disk_file *file) {
  struct disk *disk = disk_of(file->name);
  int code = refuse(disk);
  if (code == SQLITE_OK) {
    disk->syncs++;
    sync_file(file);
  } else if (!disk->dead) {
    forget_dirty(file);
  }
  return code;
}

/* ---- crashes ---- */

static void revive(struct disk *disk) {
  disk->dead = false;
  disk->fuse = disk->refuse_in = disk->refuse_for = 0;
}

/* The page cache that holds forgotten sectors may be lost, too. */
static void evict(struct disk_file *file, struct cv_rng *rng) {
  for (size_t i = 0; i < file->dirty_end; i++) {
    if (file->dirty[i] == SECTOR_FORGOTTEN && cv_rng_below(rng, 2) == 0) {
      room(&file->durable, &file->durable_cap, (i + 1) * SECTOR);
      room(&file->now, &file->now_cap, (i + 1) * SECTOR);
      memcpy(file->now + i * SECTOR, file->durable + i * SECTOR, SECTOR);
      file->dirty[i] = SECTOR_CLEAN;
    }
  }
  if (file->now != NULL) {
    memset(file->now + file->now_n, 0, file->now_cap - file->now_n);
  }
}

static bool has_forgotten(const struct disk *disk) {
  for (size_t i = 0; i < DISK_FILES; i++) {
    const struct disk_file *file = &disk->file[i];
    if (file->dirty_end > 0 && memchr(file->dirty, SECTOR_FORGOTTEN, file->dirty_end) != NULL) {
      return true;
    }
  }
  return false;
}

/* While data that a failed sync lost is still read, the power often fails: early in the next start, as it copies the
 * log. */
void disk_after_kill(struct disk *disk, struct cv_rng *rng) {
  enum { START = 24 };
  bool stays = cv_rng_below(rng, 2) == 0;
  revive(disk);
  for (size_t i = 0; i < DISK_FILES && !stays; i++) {
    evict(&disk->file[i], rng);
  }
  if (has_forgotten(disk) && cv_rng_below(rng, 2) == 0) {
    disk->fuse = 1 + (int)cv_rng_below(rng, START);
  }
}

/* A folder entry that was not synced is kept or lost; false if the file is gone. */
static bool find_entry(struct disk_file *file, struct cv_rng *rng) {
  if (file->exists != file->exists_durably && cv_rng_below(rng, 2) == 0) {
    tally(file->exists ? TALLY_ENTRY_LOST : TALLY_UNLINK_LOST);
    file->exists = file->exists_durably;
  }
  if (!file->exists) {
    file_free(file);
  }
  return file->exists;
}

static void lose_power(struct disk_file *file, struct cv_rng *rng) {
  if (!find_entry(file, rng)) {
    return;
  }
  uint64_t keep = cv_rng_below(rng, 4); /* of 3 */
  size_t end = file->dirty_end;
  if (file->is_cut && cv_rng_below(rng, 2) == 0) {
    cut_off(file);
  } else if (file->is_cut) { /* later writes are lost with it */
    end = file->cut / SECTOR < end ? file->cut / SECTOR : end;
  }
  size_t kept = 0, lost = 0;
  for (size_t i = 0; i < end; i++) {
    if (file->dirty[i] == SECTOR_DIRTY && cv_rng_below(rng, 3) >= keep) {
      lost++;
    } else if (file->dirty[i] == SECTOR_DIRTY) {
      kept++;
      settle(file, i);
      size_t to = (i + 1) * SECTOR < file->now_n ? (i + 1) * SECTOR : file->now_n;
      file->durable_n = to > file->durable_n ? to : file->durable_n;
    }
  }
  tally_add(TALLY_TORN, kept > 0 && lost > 0);
  file->is_cut = false;
  room(&file->now, &file->now_cap, file->durable_cap);
  memset(file->now, 0, file->now_cap);
  room(&file->durable, &file->durable_cap, file->durable_n);
  memcpy(file->now, file->durable, file->durable_n);
  memset(file->durable + file->durable_n, 0, file->durable_cap - file->durable_n);
  file->now_n = file->durable_n;
  if (file->dirty != NULL) {
    memset(file->dirty, 0, file->dirty_cap);
  }
  file->dirty_end = 0;
  file->exists_durably = true;
}

void disk_after_power_loss(struct disk *disk, struct cv_rng *rng) {
  revive(disk);
  for (size_t i = 0; i < DISK_FILES; i++) {
    if (disk->file[i].name[0] != '\0') {
      lose_power(&disk->file[i], rng);
    }
  }
}

static bool begins(const char *name, const char *prefix) {
  return strncmp(name, prefix, strlen(prefix)) == 0;
}

static void copy_file(const struct disk_file *from, struct disk_file *to) {
  file_free(to);
  memcpy(to->name, from->name, sizeof(to->name));
  to->exists = to->exists_durably = true;
  room(&to->now, &to->now_cap, from->durable_n);
  room(&to->durable, &to->durable_cap, from->durable_n);
  if (from->durable_n > 0) {
    memcpy(to->now, from->durable, from->durable_n);
    memcpy(to->durable, from->durable, from->durable_n);
  }
  to->now_n = to->durable_n = from->durable_n;
}

void disk_copy_durable(const struct disk *disk, const char *prefix, struct disk *ret_copy) {
  *ret_copy = (struct disk){.letter = disk->letter};
  for (size_t i = 0; i < DISK_FILES; i++) {
    if (disk->file[i].exists_durably && begins(disk->file[i].name, prefix)) {
      copy_file(&disk->file[i], &ret_copy->file[i]);
    }
  }
}

void disk_put_back(struct disk *disk, const char *prefix, const struct disk *copy) {
  for (size_t i = 0; i < DISK_FILES; i++) {
    if (begins(disk->file[i].name, prefix)) {
      file_free(&disk->file[i]);
    }
  }
  for (size_t i = 0; i < DISK_FILES; i++) {
    if (copy->file[i].name[0] != '\0' && begins(copy->file[i].name, prefix)) {
      copy_file(&copy->file[i], find(disk, copy->file[i].name, true));
    }
  }
}

/* ---- for SQLite ---- */

struct handle {
  sqlite3_file base;
  struct disk_file *file;
};

static int x_close(sqlite3_file *base) {
  return SQLITE_OK;
}

static int x_read(sqlite3_file *base, void *to, int n, sqlite3_int64 at) {
  const struct disk_file *file = ((struct handle *)base)->file;
  if (disk_of(file->name)->dead) {
    return SQLITE_IOERR_READ;
  }
  size_t from = (size_t)at, want = (size_t)n;
  size_t have = from >= file->now_n ? 0 : file->now_n - from < want ? file->now_n - from : want;
  if (have > 0) {
    memcpy(to, file->now + from, have);
  }
  memset((uint8_t *)to + have, 0, want - have);
  return have < want ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int x_write(sqlite3_file *base, const void *from, int n, sqlite3_int64 at) {
  int code = write_file(((struct handle *)base)->file, from, (size_t)n, (size_t)at);
  return code == SQLITE_IOERR ? SQLITE_IOERR_WRITE : code;
}

static int x_truncate(sqlite3_file *base, sqlite3_int64 n) {
  struct disk_file *file = ((struct handle *)base)->file;
  if (!disk_step(disk_of(file->name))) {
    return SQLITE_IOERR_TRUNCATE;
  }
  resize(file, (size_t)n);
  return SQLITE_OK;
}

static int x_sync(sqlite3_file *base, int flags) {
  struct disk_file *file = ((struct handle *)base)->file;
  if (flush_file(file) != SQLITE_OK) {
    return SQLITE_IOERR_FSYNC;
  }
  file->exists_durably = true; /* as SQLite's own VFS does, which syncs the folder of a new log or journal */
  return SQLITE_OK;
}

static int x_size(sqlite3_file *base, sqlite3_int64 *ret) {
  *ret = (sqlite3_int64)((struct handle *)base)->file->now_n;
  return SQLITE_OK;
}

static int x_lock(sqlite3_file *base, int level) {
  return SQLITE_OK;
}

static int x_is_reserved(sqlite3_file *base, int *ret) {
  *ret = 0;
  return SQLITE_OK;
}

static int x_control(sqlite3_file *base, int op, void *arg) {
  return SQLITE_NOTFOUND;
}

static int x_sector(sqlite3_file *base) {
  return SECTOR;
}

static int x_characteristics(sqlite3_file *base) {
  return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = x_close,
    .xRead = x_read,
    .xWrite = x_write,
    .xTruncate = x_truncate,
    .xSync = x_sync,
    .xFileSize = x_size,
    .xLock = x_lock,
    .xUnlock = x_lock,
    .xCheckReservedLock = x_is_reserved,
    .xFileControl = x_control,
    .xSectorSize = x_sector,
    .xDeviceCharacteristics = x_characteristics,
};

static int x_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *ret_flags) {
  struct handle *handle = (struct handle *)base;
  *handle = (struct handle){0};
  if (name == NULL || disk_of(name)->dead) {
    return SQLITE_CANTOPEN;
  }
  handle->file = find(disk_of(name), name, (flags & SQLITE_OPEN_CREATE) != 0);
  if (handle->file == NULL) {
    return SQLITE_CANTOPEN;
  }
  if (!handle->file->exists) {
    handle->file->exists = true;
    resize(handle->file, 0);
  }
  handle->base.pMethods = &methods;
  if (ret_flags != NULL) {
    *ret_flags = flags;
  }
  return SQLITE_OK;
}

static int x_delete(sqlite3_vfs *vfs, const char *name, int durably) {
  struct disk *disk = disk_of(name);
  if (!disk_step(disk)) {
    return SQLITE_IOERR_DELETE;
  }
  struct disk_file *file = find(disk, name, false);
  if (file == NULL) {
    return SQLITE_IOERR_DELETE_NOENT;
  }
  file->exists = false;
  if (durably != 0) {
    file_free(file);
  }
  return SQLITE_OK;
}

static int x_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret) {
  *ret = find(disk_of(name), name, false) != NULL;
  return SQLITE_OK;
}

static int x_full(sqlite3_vfs *vfs, const char *name, int n, char *ret) {
  (void)snprintf(ret, (size_t)n, "%s", name);
  return SQLITE_OK;
}

static int x_randomness(sqlite3_vfs *vfs, int n, char *ret) {
  memset(ret, 7, (size_t)n);
  return n;
}

static int x_sleep(sqlite3_vfs *vfs, int us) {
  return us;
}

static int x_time(sqlite3_vfs *vfs, double *ret) {
  *ret = 2460000.5;
  return SQLITE_OK;
}

static int x_last_error(sqlite3_vfs *vfs, int n, char *ret) {
  return 0;
}

void disk_register(void) {
  static sqlite3_vfs vfs = {
      .iVersion = 1,
      .szOsFile = sizeof(struct handle),
      .mxPathname = 64,
      .zName = CV_SIM_VFS,
      .xOpen = x_open,
      .xDelete = x_delete,
      .xAccess = x_access,
      .xFullPathname = x_full,
      .xRandomness = x_randomness,
      .xSleep = x_sleep,
      .xCurrentTime = x_time,
      .xGetLastError = x_last_error,
  };
  (void)sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
  (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  CV_REQUIRE(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
}

/* ---- for those who call the system ---- */

int sim_open(const char *path, int flags, int mode);
ssize_t sim_pread(int fd, void *to, size_t n, off_t at);
ssize_t sim_pwrite(int fd, const void *from, size_t n, off_t at);
int sim_fdatasync(int fd);
int sim_fsync(int fd);
int sim_close(int fd);

/* Descriptors are disk x DESCRIPTORS + file, or the folder. */
enum { FOLDER = DISK_FILES, DESCRIPTORS };

static struct disk_file *behind(int fd) {
  CV_REQUIRE(fd % DESCRIPTORS != FOLDER);
  return &disks[fd / DESCRIPTORS]->file[fd % DESCRIPTORS];
}

static int descriptor(const struct disk *disk, size_t file) {
  size_t i = 0;
  while (disks[i] != disk) {
    i++;
  }
  return (int)(i * DESCRIPTORS + file);
}

static int failed(int code) {
  errno = code == SQLITE_FULL ? ENOSPC : EIO;
  return -1;
}

int sim_open(const char *path, int flags, int mode) {
  struct disk *disk = disk_of(path);
  if (!disk_step(disk)) {
    return failed(SQLITE_IOERR);
  }
  if ((flags & O_DIRECTORY) != 0) {
    return descriptor(disk, FOLDER);
  }
  struct disk_file *file = find(disk, path, (flags & O_CREAT) != 0);
  if (file == NULL) {
    errno = ENOENT;
    return -1;
  }
  file->exists = true;
  return descriptor(disk, (size_t)(file - disk->file));
}

ssize_t sim_pread(int fd, void *to, size_t n, off_t at) {
  const struct disk_file *file = behind(fd);
  if (disk_of(file->name)->dead) {
    return failed(SQLITE_IOERR);
  }
  size_t from = (size_t)at;
  size_t have = from >= file->now_n ? 0 : file->now_n - from < n ? file->now_n - from : n;
  if (have > 0) {
    memcpy(to, file->now + from, have);
  }
  return (ssize_t)have;
}

ssize_t sim_pwrite(int fd, const void *from, size_t n, off_t at) {
  int code = write_file(behind(fd), from, n, (size_t)at);
  return code == SQLITE_OK ? (ssize_t)n : failed(code);
}

int sim_fdatasync(int fd) {
  int code = flush_file(behind(fd));
  return code == SQLITE_OK ? 0 : failed(code);
}

/* The descriptor of the folder. */
int sim_fsync(int fd) {
  CV_REQUIRE(fd % DESCRIPTORS == FOLDER);
  struct disk *disk = disks[fd / DESCRIPTORS];
  int code = refuse(disk);
  for (size_t i = 0; code == SQLITE_OK && i < DISK_FILES; i++) {
    disk->file[i].exists_durably = disk->file[i].exists;
  }
  return code == SQLITE_OK ? 0 : failed(code);
}

int sim_close(int fd) {
  return 0;
}
