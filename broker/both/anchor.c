/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/anchor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/before.h"

static const char head[] = "crowdveil-anchor 5 ";

/* Every field has a fixed position and length, so that a mark is replaced in place by one write of the same length. */
enum {
  VERSION = 5,
  VERSION_AT = sizeof("crowdveil-anchor ") - 1,
  DIGITS = 20, /* of a number */
  NUMBER = DIGITS + 1,
  DATABASE_AT = sizeof(head) - 1,
  COMMIT_AT = DATABASE_AT + 2 * CV_DATABASE_ID_BYTES + 1,
  HASH_AT = COMMIT_AT + NUMBER,
  TOTALS_AT = HASH_AT + 2 * CV_DIGEST_BYTES + 1,
  TOTALS = 4,
  TERM_AT = TOTALS_AT + TOTALS * NUMBER,
  TERM_ID_AT = TERM_AT + NUMBER,
  LINE = TERM_ID_AT + 2 * CV_TERM_ID_BYTES + 1,
};

struct cv_anchor {
  int fd;
  char *path;
};

static void put_hex(char *to, const uint8_t *bytes, size_t n) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < n; i++) {
    to[2 * i] = digits[bytes[i] >> 4];
    to[2 * i + 1] = digits[bytes[i] & 15];
  }
}

static bool get_hex(const char *from, uint8_t *bytes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const char digits[] = {from[2 * i], from[2 * i + 1], '\0'};
    if (strspn(digits, "0123456789abcdef") != 2) {
      return false;
    }
    bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
  }
  return true;
}

/* Parses a number of DIGITS digits that is followed by `end`. */
static bool get_number(const char *from, char end, uint64_t *ret) {
  char digits[DIGITS + 1];
  memcpy(digits, from, DIGITS);
  digits[DIGITS] = '\0';
  /* Strings of equal length compare like their numbers; strtoull() alone would turn an overflow into the largest
   * number. */
  if (from[DIGITS] != end || strspn(digits, "0123456789") != DIGITS || strcmp(digits, "18446744073709551615") > 0) {
    return false;
  }
  *ret = strtoull(digits, NULL, 10);
  return true;
}

static bool parse(const char *line, struct cv_anchor_mark *ret) {
  struct cv_anchor_mark mark = {.commit = 0};
  uint64_t *const totals[TOTALS] = {&mark.totals.campaigns, &mark.totals.releases, &mark.totals.tokens,
                                    &mark.totals.promised_micro};
  for (size_t i = 0; i < TOTALS; i++) {
    if (!get_number(line + TOTALS_AT + i * NUMBER, ' ', totals[i])) {
      return false;
    }
  }
  if (strncmp(line, head, DATABASE_AT) != 0 || line[COMMIT_AT - 1] != ' ' || line[TOTALS_AT - 1] != ' ' ||
      line[LINE - 1] != '\n' || !get_number(line + COMMIT_AT, ' ', &mark.commit) ||
      !get_hex(line + DATABASE_AT, mark.database, sizeof(mark.database)) ||
      !get_hex(line + HASH_AT, mark.hash.bytes, sizeof(mark.hash.bytes)) ||
      !get_number(line + TERM_AT, ' ', &mark.term) || !get_hex(line + TERM_ID_AT, mark.term_id, sizeof(mark.term_id))) {
    return false;
  }
  *ret = mark;
  return true;
}

/* Of another version, only the first words are known. */
static enum cv_err check_version(const char *path, const char *line, struct cv_why *why) {
  unsigned long version = strncmp(line, head, VERSION_AT) == 0 ? strtoul(line + VERSION_AT, NULL, 10) : VERSION;
  return version == VERSION || version == 0 ? CV_OK
         : version > VERSION
             ? cv_fail(why, CV_ERR_VERSION, "%s: an anchor of version %lu, of a later release; expected version %d",
                       path, version, VERSION)
             : cv_fail(why, CV_ERR_VERSION, "%s: an anchor of version %lu, " CV_BEFORE "; " CV_BEFORE_BROKER, path,
                       version);
}

static enum cv_err read_mark(struct cv_anchor *anchor, struct cv_anchor_mark *ret, bool *ret_exists,
                             struct cv_why *why) {
  char line[LINE + 1] = {0};
  ssize_t n = pread(anchor->fd, line, LINE, 0);
  /* open() makes the file before its first mark is known: empty means that there is no mark yet. */
  if (n == 0) {
    *ret_exists = false;
    return CV_OK;
  }
  CV_TRY(check_version(anchor->path, line, why));
  if (n < LINE || !parse(line, ret)) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s: not an anchor of a broker; expected one line of %d bytes", anchor->path,
                   LINE);
  }
  *ret_exists = true;
  return CV_OK;
}

/* A new file survives a power failure only if its folder is synced, too. */
static enum cv_err sync_folder(const char *path, struct cv_why *why) {
  char *copy = strdup(path);
  if (copy == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  const char *folder = dirname(copy);
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  enum cv_err err = CV_OK;
  if (fd < 0 || fsync(fd) != 0) {
    err = cv_fail(why, CV_ERR_IO, "%s: cannot sync the anchor's folder %s: %s", path, folder, strerror(errno));
  }
  if (fd >= 0) {
    (void)close(fd);
  }
  free(copy);
  return err;
}

enum cv_err cv_anchor_peek(const char *path, bool *ret_exists, struct cv_anchor_mark *ret_mark, struct cv_why *why) {
  char name[4096];
  (void)snprintf(name, sizeof(name), "%s", path);
  struct cv_anchor anchor = {.fd = open(path, O_RDONLY | O_CLOEXEC, 0), .path = name};
  if (anchor.fd < 0 && errno == ENOENT) {
    *ret_exists = false;
    return CV_OK;
  }
  if (anchor.fd < 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot open the anchor: %s", path, strerror(errno));
  }
  enum cv_err err = read_mark(&anchor, ret_mark, ret_exists, why);
  (void)close(anchor.fd);
  return err;
}

enum cv_err cv_anchor_open(const char *path, struct cv_anchor **ret, bool *ret_exists, struct cv_anchor_mark *ret_mark,
                           struct cv_why *why) {
  struct cv_anchor *anchor = calloc(1, sizeof(*anchor));
  char *copy = strdup(path);
  if (anchor == NULL || copy == NULL) {
    free(anchor);
    free(copy);
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  anchor->path = copy;
  /* Kept open for the daemon's life: it lies outside the state folder, and the sandbox will not let it be opened
   * again. */
  anchor->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (anchor->fd < 0) {
    enum cv_err err = cv_fail(why, CV_ERR_IO, "%s: cannot open the anchor: %s", path, strerror(errno));
    cv_anchor_close(anchor);
    return err;
  }
  bool exists = false;
  enum cv_err err = read_mark(anchor, ret_mark, &exists, why);
  if (err == CV_OK && !exists) {
    err = sync_folder(path, why);
  }
  if (err != CV_OK) {
    cv_anchor_close(anchor);
    return err;
  }
  *ret_exists = exists;
  *ret = anchor;
  return CV_OK;
}

enum cv_err cv_anchor_write(struct cv_anchor *anchor, const struct cv_anchor_mark *mark, struct cv_why *why) {
  char database[2 * CV_DATABASE_ID_BYTES + 1] = {0};
  char hash[2 * CV_DIGEST_BYTES + 1] = {0};
  char term_id[2 * CV_TERM_ID_BYTES + 1] = {0};
  char line[LINE + 1];
  put_hex(database, mark->database, sizeof(mark->database));
  put_hex(hash, mark->hash.bytes, sizeof(mark->hash.bytes));
  put_hex(term_id, mark->term_id, sizeof(mark->term_id));
  (void)snprintf(line, sizeof(line),
                 "%s%s %020" PRIu64 " %s %020" PRIu64 " %020" PRIu64 " %020" PRIu64 " %020" PRIu64 " %020" PRIu64
                 " %s\n",
                 head, database, mark->commit, hash, mark->totals.campaigns, mark->totals.releases, mark->totals.tokens,
                 mark->totals.promised_micro, mark->term, term_id);
  /* One write of fixed length in place, synced before anything that depends on it is sent. The line is shorter than a
   * sector: a power failure leaves the old mark or the new one. */
  ssize_t written = pwrite(anchor->fd, line, LINE, 0);
  if (written != LINE || fdatasync(anchor->fd) != 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot write the anchor: %s", anchor->path,
                   strerror(written >= 0 && written != LINE ? ENOSPC : errno));
  }
  return CV_OK;
}

void cv_anchor_close(struct cv_anchor *anchor) {
  if (anchor == NULL) {
    return;
  }
  if (anchor->fd >= 0) {
    (void)close(anchor->fd);
  }
  free(anchor->path);
  free(anchor);
}
