/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/ring_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crypto/ring.h"

static enum cv_err fail_errno(struct cv_why *why, const char *path, const char *what) {
  enum cv_err err = errno == EEXIST ? CV_ERR_EXISTS : errno == ENOENT ? CV_ERR_NOT_FOUND : CV_ERR_IO;
  return cv_fail(why, err, "%s: %s: %s", path, what, strerror(errno));
}

/* ---- reading ---- */

static enum cv_err check_file(int fd, const char *path, struct cv_why *why) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return fail_errno(why, path, "cannot stat the key file");
  }
  if (!S_ISREG(info.st_mode)) {
    return cv_fail(why, CV_ERR_INVALID, "%s: not a regular file; expected a key file", path);
  }
  /* Refused, not repaired: a key that others could read may be known to them. */
  if ((info.st_mode & 077) != 0) {
    return cv_fail(why, CV_ERR_DENIED, "%s: mode %04o gives others access to the key; expected 0600 or stricter", path,
                   (unsigned)info.st_mode & 07777U);
  }
  return CV_OK;
}

/* Checked and read through one descriptor: the file cannot be exchanged in between. */
static enum cv_err read_checked(int fd, const char *path, char *to, size_t size, size_t *ret_n, struct cv_why *why) {
  CV_TRY(check_file(fd, path, why));
  for (size_t n = 0;;) {
    ssize_t got = read(fd, to + n, size - n);
    if (got < 0 && errno != EINTR) {
      return fail_errno(why, path, "cannot read the key file");
    }
    n += got > 0 ? (size_t)got : 0;
    if (got == 0 || n == size) {
      *ret_n = n;
      return CV_OK;
    }
  }
}

enum cv_err cv_ring_file_read(const char *path, char *to, size_t size, size_t *ret_n, struct cv_why *why) {
  /* O_NONBLOCK: a pipe in the file's place must not hang the program. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) {
    return fail_errno(why, path, "cannot open the key file");
  }
  enum cv_err err = read_checked(fd, path, to, size, ret_n, why);
  (void)close(fd);
  return err;
}

/* ---- writing ---- */

/* Opens the folder of a file. */
static int open_folder(const char *path) {
  char copy[PATH_MAX];
  if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy)) {
    errno = ENAMETOOLONG;
    return -1;
  }
  return open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Makes the file's directory entry durable. */
static int sync_folder(const char *path) {
  int fd = open_folder(path);
  int failed = fd < 0 ? -1 : fsync(fd);
  if (fd >= 0) {
    (void)close(fd);
  }
  return failed;
}

static bool write_all(int fd, const char *bytes, size_t n) {
  while (n > 0) {
    ssize_t wrote = write(fd, bytes, n);
    if (wrote < 0 && errno != EINTR) {
      return false;
    }
    bytes += wrote > 0 ? wrote : 0;
    n -= wrote > 0 ? (size_t)wrote : 0;
  }
  return true;
}

/* Writes a new file with the owner of `like`, if there is one. */
static enum cv_err write_new(const char *path, const struct stat *like, const char *bytes, size_t n,
                             struct cv_why *why) {
  /* O_EXCL: a key that exists is never overwritten, since it may be the only one that opens a database. */
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    enum cv_err err = fail_errno(why, path, "cannot create the key file");
    return err == CV_ERR_NOT_FOUND ? CV_ERR_IO : err;
  }
  bool is_own = like == NULL || (like->st_uid == geteuid() && like->st_gid == getegid());
  bool done = (is_own || fchown(fd, like->st_uid, like->st_gid) == 0) &&
              fchmod(fd, like == NULL ? 0600 : like->st_mode & 0700) == 0 && write_all(fd, bytes, n) && fsync(fd) == 0;
  int error = errno;
  done = close(fd) == 0 && done;
  if (!done) {
    errno = error;
    enum cv_err err = fail_errno(why, path, "cannot write the key file");
    /* Otherwise the next start would find half a file. */
    (void)unlink(path);
    return err;
  }
  return CV_OK;
}

enum cv_err cv_ring_file_create(const char *path, const char *bytes, size_t n, struct cv_why *why) {
  CV_TRY(write_new(path, NULL, bytes, n, why));
  if (sync_folder(path) != 0) {
    enum cv_err err = fail_errno(why, path, "cannot sync the folder of the key file");
    (void)unlink(path);
    return err;
  }
  return CV_OK;
}

/* Overwrites a file that has no name any more; one that still has another name is somebody's copy. */
static void wipe(int fd) {
  static const char zeros[CV_RING_FILE_BYTES];
  struct stat info;
  if (fstat(fd, &info) == 0 && info.st_nlink == 0) {
    (void)!pwrite(fd, zeros, info.st_size < (off_t)sizeof(zeros) ? (size_t)info.st_size : sizeof(zeros), 0);
    (void)fdatasync(fd);
  }
}

/* Removes what an interrupted run has left; its keys are in the file itself, or were never used. */
static void remove_rest(const char *path) {
  int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd >= 0) {
    (void)unlink(path);
    wipe(fd);
    (void)close(fd);
  }
}

/* The path without symbolic links, so that a link stays one, and the name for the new file. */
static enum cv_err real_paths(const char *path, char real[PATH_MAX], char fresh[PATH_MAX], struct cv_why *why) {
  if (realpath(path, real) == NULL) {
    return fail_errno(why, path, "cannot find the key file");
  }
  if (snprintf(fresh, PATH_MAX, "%s.new", real) >= PATH_MAX) {
    errno = ENAMETOOLONG;
    return fail_errno(why, path, "cannot create the key file");
  }
  return CV_OK;
}

static enum cv_err exchange(int old, const char *real, const char *fresh, const char *bytes, size_t n,
                            struct cv_why *why) {
  struct stat info;
  if (fstat(old, &info) != 0) {
    return fail_errno(why, real, "cannot stat the key file");
  }
  remove_rest(fresh);
  CV_TRY(write_new(fresh, &info, bytes, n, why));
  if (rename(fresh, real) != 0 || sync_folder(real) != 0) {
    enum cv_err err = fail_errno(why, real, "cannot replace the key file");
    remove_rest(fresh);
    return err;
  }
  wipe(old); /* only now: until then it may be the file that a power failure leaves */
  return CV_OK;
}

enum cv_err cv_ring_file_replace(const char *path, const char *bytes, size_t n, struct cv_why *why) {
  char real[PATH_MAX], fresh[PATH_MAX];
  CV_TRY(real_paths(path, real, fresh, why));
  int old = open(real, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (old < 0) {
    return fail_errno(why, path, "cannot open the key file for writing");
  }
  enum cv_err err = exchange(old, real, fresh, bytes, n, why);
  (void)close(old);
  return err;
}

enum cv_err cv_ring_lock(const char *path, int *ret_fd, struct cv_why *why) {
  char real[PATH_MAX], fresh[PATH_MAX];
  CV_TRY(real_paths(path, real, fresh, why));
  /* The folder, since the file itself is replaced. */
  int fd = open_folder(real);
  if (fd < 0) {
    return fail_errno(why, path, "cannot open the folder of the key file");
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    enum cv_err err = errno == EWOULDBLOCK
                          ? cv_fail(why, CV_ERR_STATE, "%s: another program is changing the key file", path)
                          : fail_errno(why, path, "cannot lock the folder of the key file");
    (void)close(fd);
    return err;
  }
  *ret_fd = fd;
  return CV_OK;
}
