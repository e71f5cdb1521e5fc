/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/trail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/text.h"
#include "common/crypto/crypto.h"
#include "common/daemon/trail_line.h"

enum { TAIL_BYTES = 65536 /* more than the longest line */, CELLS = 256 };

struct cv_trail {
  char *path;
  const char *program;
  int fd, next_fd;               /* next_fd: the file after a rotation, for the next batch; -1: none */
  struct cv_buf adding, writing; /* lines without their last two fields, each ended by a line break */
  struct cv_trail_end end;       /* of the file; used by the thread that writes */
  /* refusals in the minute that began at `minute_ms`, by a hash of the actor; and those that were not written */
  uint64_t minute_ms, unwritten;
  uint8_t refusals[CELLS];
};

static enum cv_err fail(struct cv_why *why, const char *path, const char *what) {
  enum cv_err err = errno == ENOENT ? CV_ERR_NOT_FOUND : errno == EACCES ? CV_ERR_DENIED : CV_ERR_IO;
  return cv_fail(why, err, "audit: %s: %s: %s", path, what, strerror(errno));
}

/* ---- files ---- */

/* Makes a new file's name durable. */
static enum cv_err sync_folder(const char *path, struct cv_why *why) {
  char copy[PATH_MAX];
  (void)snprintf(copy, sizeof(copy), "%s", path);
  int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool done = fd >= 0 && fsync(fd) == 0;
  enum cv_err err = done ? CV_OK : fail(why, path, "cannot sync its folder");
  if (fd >= 0) {
    (void)close(fd);
  }
  return err;
}

/* Two writers would break the chain. */
static enum cv_err claim(int fd, const char *path, struct cv_why *why) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return cv_fail(why, CV_ERR_INVALID, "audit: %s is not a regular file; expected a file or a new name", path);
  }
  if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    return cv_fail(why, CV_ERR_STATE, "audit: %s: another program writes to this file; expected a file of its own",
                   path);
  }
  return CV_OK;
}

static enum cv_err open_at(const char *path, int access, int *ret, struct cv_why *why) {
  int fd = open(path, access | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
  if (fd < 0) {
    return fail(why, path, "cannot open");
  }
  enum cv_err err = claim(fd, path, why);
  if (err == CV_OK) {
    err = sync_folder(path, why);
  }
  if (err != CV_OK) {
    (void)close(fd);
    return err;
  }
  *ret = fd;
  return CV_OK;
}

static enum cv_err continue_file(struct cv_trail *trail, struct cv_why *why) {
  off_t size = lseek(trail->fd, 0, SEEK_END);
  off_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
  char *tail = malloc(TAIL_BYTES);
  ssize_t n = tail == NULL || size < 0 ? -1 : pread(trail->fd, tail, TAIL_BYTES, from);
  enum cv_err err = CV_OK;
  if (n != size - from) {
    errno = n >= 0 ? EIO : errno; /* less than there is */
    err = tail == NULL ? cv_fail(why, CV_ERR_NOMEM, "audit: out of memory") : fail(why, trail->path, "cannot read");
  } else if (!cv_trail_end_read(tail, (size_t)n, cv_sha256, &trail->end)) {
    err = cv_fail(why, CV_ERR_FORMAT, "audit: %s: its last line is not of an audit log; expected one, or a new name",
                  trail->path);
  }
  free(tail);
  return err;
}

enum cv_err cv_trail_open(const char *path, const char *program, struct cv_trail **ret, struct cv_why *why) {
  struct cv_trail *trail = calloc(1, sizeof(*trail));
  if (trail == NULL || (trail->path = strdup(path)) == NULL) {
    free(trail);
    return cv_fail(why, CV_ERR_NOMEM, "audit: out of memory");
  }
  trail->program = program;
  trail->fd = trail->next_fd = -1;
  enum cv_err err = open_at(path, O_RDWR, &trail->fd, why);
  if (err == CV_OK) {
    err = continue_file(trail, why);
  }
  if (err != CV_OK) {
    cv_trail_close(trail);
    return err;
  }
  *ret = trail;
  return CV_OK;
}

static void close_fd(int *fd) {
  if (*fd >= 0) {
    (void)close(*fd);
    *fd = -1;
  }
}

void cv_trail_close(struct cv_trail *trail) {
  if (trail == NULL) {
    return;
  }
  close_fd(&trail->fd);
  close_fd(&trail->next_fd);
  cv_buf_fini(&trail->adding);
  cv_buf_fini(&trail->writing);
  free(trail->path);
  free(trail);
}

enum cv_err cv_trail_reopen(struct cv_trail *trail, struct cv_why *why) {
  struct stat now, old;
  if (trail == NULL) {
    return CV_OK;
  }
  /* Nothing was renamed: our own lock would be in the way. */
  if (stat(trail->path, &now) == 0 && fstat(trail->next_fd >= 0 ? trail->next_fd : trail->fd, &old) == 0 &&
      now.st_dev == old.st_dev && now.st_ino == old.st_ino) {
    return CV_OK;
  }
  int fd;
  CV_TRY(open_at(trail->path, O_WRONLY, &fd, why));
  if (fstat(fd, &now) != 0 || now.st_size > 0) {
    (void)close(fd);
    return cv_fail(why, CV_ERR_EXISTS, "audit: %s: not a new file; expected none, or an empty one", trail->path);
  }
  close_fd(&trail->next_fd);
  trail->next_fd = fd;
  return CV_OK;
}

/* ---- lines ---- */

static void put(struct cv_buf *out, const char *text) {
  cv_buf_put(out, text, strlen(text));
}

/* Appends the first character of `text`, escaped, and returns its length. Names may have been chosen by a peer: none of
 * them can end the string or the line. */
static size_t put_char(struct cv_buf *out, const char *text, size_t left) {
  size_t n = cv_text_char(text, left);
  char escaped[8];
  if (n > 0) {
    put(out, *text == '"' || *text == '\\' ? "\\" : "");
    cv_buf_put(out, text, n);
    return n;
  }
  unsigned char byte = (unsigned char)*text;
  (void)snprintf(escaped, sizeof(escaped), "\\u%04x", byte < 0x80 ? byte : 0xfffdU);
  put(out, escaped);
  return 1;
}

static void put_string(struct cv_buf *out, const char *name, const char *text) {
  put(out, ",\"");
  put(out, name);
  put(out, "\":\"");
  for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
    n = put_char(out, text, left);
  }
  put(out, "\"");
}

static void put_number(struct cv_buf *out, const char *name, uint64_t number) {
  char text[96];
  (void)snprintf(text, sizeof(text), ",\"%s\":%" PRIu64, name, number);
  put(out, text);
}

static void put_time(struct cv_buf *out, uint64_t wall_ms) {
  time_t seconds = (time_t)(wall_ms / 1000);
  struct tm tm;
  char text[64], date[32];
  (void)gmtime_r(&seconds, &tm);
  (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
  (void)snprintf(text, sizeof(text), "{\"time\":\"%s.%03uZ\"", date, (unsigned)(wall_ms % 1000));
  put(out, text);
}

static void add(struct cv_trail *trail, const struct cv_event *event, uint64_t wall_ms) {
  struct cv_buf *out = &trail->adding;
  put_time(out, wall_ms);
  put_string(out, "program", trail->program);
  put_string(out, "event", event->what);
  put_string(out, "actor", event->actor == NULL ? trail->program : event->actor);
  if (event->serial != NULL && event->serial[0] != '\0') {
    put_string(out, "serial", event->serial);
  }
  if (event->campaign != 0) {
    put_number(out, "campaign", event->campaign);
  }
  if (event->name != NULL) {
    put_string(out, "name", event->name);
  }
  put_string(out, "outcome", event->refused == NULL ? "done" : "refused");
  if (event->refused != NULL) {
    put_string(out, "reason", event->refused);
  }
  for (size_t i = 0; i < event->facts; i++) {
    const struct cv_event_fact *fact = &event->fact[i];
    if (fact->text != NULL) {
      put_string(out, fact->name, fact->text);
    } else {
      put_number(out, fact->name, fact->number);
    }
  }
  put(out, "\n");
}

/* Counts a refusal; false if it is beyond the bound. Actors with the same hash share it. */
static bool may_refuse(struct cv_trail *trail, const char *actor) {
  uint64_t hash = 0;
  for (; actor != NULL && *actor != '\0'; actor++) {
    hash = cv_mix64(hash ^ (unsigned char)*actor);
  }
  uint8_t *count = &trail->refusals[hash % CELLS];
  bool may = *count < CV_TRAIL_REFUSALS;
  *count += may;
  trail->unwritten += !may;
  return may;
}

void cv_trail_tick(struct cv_trail *trail, uint64_t now_ms, uint64_t wall_ms) {
  if (trail == NULL || now_ms - trail->minute_ms < CV_TRAIL_MINUTE_MS) {
    return;
  }
  if (trail->unwritten > 0) {
    const struct cv_event_fact fact = {.name = "more", .number = trail->unwritten};
    add(trail, &(struct cv_event){.what = "refusals", .fact = &fact, .facts = 1}, wall_ms);
  }
  trail->minute_ms = now_ms;
  trail->unwritten = 0;
  memset(trail->refusals, 0, sizeof(trail->refusals));
}

void cv_trail_add(struct cv_trail *trail, const struct cv_event *event, uint64_t now_ms, uint64_t wall_ms) {
  cv_trail_tick(trail, now_ms, wall_ms);
  if (trail != NULL && (event->refused == NULL || may_refuse(trail, event->actor))) {
    add(trail, event, wall_ms);
  }
}

/* ---- batches ---- */

bool cv_trail_is_pending(const struct cv_trail *trail) {
  /* Out of memory, too: the next write says so. */
  return trail != NULL && (trail->adding.len > 0 || !cv_buf_ok(&trail->adding));
}

bool cv_trail_flush(struct cv_trail *trail) {
  if (!cv_trail_is_pending(trail)) {
    return false;
  }
  if (trail->next_fd >= 0) {
    close_fd(&trail->fd);
    trail->fd = trail->next_fd;
    trail->next_fd = -1;
    trail->end.is_torn = false;
  }
  struct cv_buf written = trail->writing;
  trail->writing = trail->adding;
  trail->adding = written;
  cv_buf_clear(&trail->adding);
  return true;
}

void cv_trail_drop(struct cv_trail *trail) {
  if (trail != NULL) {
    cv_buf_clear(&trail->adding);
  }
}

/* The lines with number and digest; and the end of the file as it is after them. */
static void complete(const struct cv_trail *trail, struct cv_buf *out, struct cv_trail_end *ret) {
  const char *at = (const char *)trail->writing.data, *stop = at + trail->writing.len;
  *ret = trail->end;
  put(out, ret->is_torn ? "\n" : "");
  ret->is_torn = false;
  while (at < stop && cv_buf_ok(out)) {
    const char *line_end = memchr(at, '\n', (size_t)(stop - at));
    size_t from = out->len;
    char hex[CV_TRAIL_HEX];
    cv_trail_line_hex(&ret->last, hex);
    cv_buf_put(out, at, (size_t)(line_end - at));
    put_number(out, "n", ++ret->lines);
    put_string(out, "previous", hex);
    put(out, "}\n");
    if (cv_buf_ok(out)) {
      cv_sha256(out->data + from, out->len - from - 1, NULL, 0, &ret->last);
    }
    at = line_end + 1;
  }
}

static bool append(int fd, const uint8_t *bytes, size_t n) {
  while (n > 0) {
    ssize_t done = write(fd, bytes, n);
    if (done < 0 && errno != EINTR) {
      return false;
    }
    bytes += done > 0 ? done : 0;
    n -= done > 0 ? (size_t)done : 0;
  }
  return fdatasync(fd) == 0;
}

enum cv_err cv_trail_write(struct cv_trail *trail, struct cv_why *why) {
  struct cv_buf out = {0};
  if (trail == NULL || (trail->writing.len == 0 && cv_buf_ok(&trail->writing))) {
    return CV_OK;
  }
  struct cv_trail_end end;
  complete(trail, &out, &end);
  enum cv_err err = CV_OK;
  if (!cv_buf_ok(&trail->writing) || !cv_buf_ok(&out)) {
    err = cv_fail(why, CV_ERR_NOMEM, "audit: out of memory");
  } else if (!append(trail->fd, out.data, out.len)) {
    err = fail(why, trail->path, "cannot write");
  } else {
    trail->end = end;
    cv_buf_clear(&trail->writing);
  }
  cv_buf_fini(&out);
  return err;
}

enum cv_err cv_trail_record(const char *path, const char *program, const struct cv_event *event, struct cv_why *why) {
  struct cv_trail *trail;
  if (path == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_trail_open(path, program, &trail, why));
  cv_trail_add(trail, event, cv_clock_mono_ms(), cv_clock_wall_ms());
  enum cv_err err = cv_trail_flush(trail) ? cv_trail_write(trail, why) : CV_OK;
  cv_trail_close(trail);
  return err;
}
