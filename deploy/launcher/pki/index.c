/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/index.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 256 };

/* Returns true if `path` still is the open file. */
static bool is_at(int fd, const char *path) {
  struct stat open_, there;
  return fstat(fd, &open_) == 0 && stat(path, &there) == 0 && open_.st_dev == there.st_dev &&
         open_.st_ino == there.st_ino;
}

enum cv_err cv_pki_index_open(const char *path, bool create, struct cv_pki_index *ret, struct cv_why *why) {
  int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600);
  if (fd < 0) {
    return cv_fail(why, errno == EEXIST ? CV_ERR_EXISTS : CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  off_t end = flock(fd, LOCK_EX) == 0 ? lseek(fd, 0, SEEK_END) : -1;
  if (end < 0) {
    enum cv_err err = cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
    (void)close(fd);
    return err;
  }
  if (!is_at(fd, path)) { /* the previous owner of the lock removed the file: open the new one */
    (void)close(fd);
    return cv_pki_index_open(path, create, ret, why);
  }
  *ret = (struct cv_pki_index){.fd = fd, .end = end};
  return CV_OK;
}

void cv_pki_index_close(struct cv_pki_index *index) {
  (void)close(index->fd);
}

/* One line of the file: SERIAL \t IDENTITY \t SECONDS. */
static bool read_line(char *line, struct cv_identity *ret_identity, int64_t *ret_not_after) {
  char *identity = strchr(line, '\t');
  char *not_after = identity != NULL ? strchr(identity + 1, '\t') : NULL;
  if (not_after == NULL) {
    return false;
  }
  *not_after++ = '\0';
  char *end;
  errno = 0;
  long long seconds = strtoll(not_after, &end, 10);
  if (errno != 0 || end == not_after || *end != '\n' || cv_identity_parse(identity + 1, ret_identity, NULL) != CV_OK) {
    return false;
  }
  *ret_not_after = seconds;
  return true;
}

static bool is_same(const struct cv_identity *a, const struct cv_identity *b) {
  return a->role == b->role && strcmp(a->name, b->name) == 0;
}

static enum cv_err check_lines(FILE *file, const char *path, const struct cv_identity *identity, bool renew,
                               int64_t now, struct cv_why *why) {
  char line[LINE_BYTES];
  for (unsigned number = 1; fgets(line, sizeof(line), file) != NULL; number++) {
    struct cv_identity other;
    int64_t not_after;
    if (!read_line(line, &other, &not_after)) {
      return cv_fail(why, CV_ERR_DAMAGED, "%s:%u: expected SERIAL, IDENTITY and SECONDS, separated by tabs", path,
                     number);
    }
    /* Expired certificates do not count; a renewal may overlap only the same identity. */
    if (not_after > now && cv_identity_overlaps(&other, identity) && !(renew && is_same(&other, identity))) {
      return cv_fail(why, CV_ERR_EXISTS, "%s/%s: overlaps %s/%s, which has a certificate already (%s:%u)",
                     cv_role_text(identity->role), identity->name, cv_role_text(other.role), other.name, path, number);
    }
  }
  return ferror(file) ? cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno)) : CV_OK;
}

enum cv_err cv_pki_index_check(const struct cv_pki_index *index, const char *path, const struct cv_identity *identity,
                               bool renew, int64_t now, struct cv_why *why) {
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  enum cv_err err = check_lines(file, path, identity, renew, now, why);
  (void)fclose(file);
  return err;
}

enum cv_err cv_pki_index_append(struct cv_pki_index *index, const char *path, const char *serial,
                                const struct cv_identity *identity, int64_t not_after, struct cv_why *why) {
  char line[LINE_BYTES];
  int n = snprintf(line, sizeof(line), "%s\tcrowdveil:%s/%s\t%" PRId64 "\n", serial, cv_role_text(identity->role),
                   identity->name, not_after);
  if (pwrite(index->fd, line, (size_t)n, index->end) != n || fsync(index->fd) != 0) {
    enum cv_err err = cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
    /* A partial line would make the index unreadable. */
    (void)!ftruncate(index->fd, index->end);
    return err;
  }
  index->end += n;
  return CV_OK;
}
