/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/receive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/admin/path.h"

/* A large database on a busy disk takes minutes, in which the daemon sends nothing. */
enum { SILENCE_S = 900, HEAD_BYTES = 8192, BLOCK_BYTES = 256 * 1024, TRICKLE_BYTES = 4 << 20 };

struct receiver {
  const char *path;
  int socket, fd;
  size_t n; /* bytes in `head` */
  char head[HEAD_BYTES];
};

static enum cv_err call(struct receiver *receiver, struct cv_why *why) {
  static const struct timeval silence = {.tv_sec = SILENCE_S};
  static const char request[] =
      "POST /backup HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  struct sockaddr_un address;
  CV_TRY(cv_admin_path(receiver->path, &address, why));
  receiver->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receiver->socket < 0 || setsockopt(receiver->socket, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence)) != 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot create a socket: %s", receiver->path, strerror(errno));
  }
  if (connect(receiver->socket, (const struct sockaddr *)&address, sizeof(address)) != 0) {
    return cv_fail(why, errno == ENOENT || errno == ECONNREFUSED ? CV_ERR_CLOSED : CV_ERR_IO,
                   "%s: no daemon answers: %s", receiver->path, strerror(errno));
  }
  /* A failure shows when the answer is read. */
  (void)send(receiver->socket, request, sizeof(request) - 1, MSG_NOSIGNAL);
  return CV_OK;
}

/* Reads at most `n` bytes; 0 at the end. */
static enum cv_err read_some(const struct receiver *receiver, void *to, size_t n, size_t *ret, struct cv_why *why) {
  ssize_t got;
  do {
    got = recv(receiver->socket, to, n, 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    return cv_fail(why, CV_ERR_IO, "%s: no copy: %s", receiver->path,
                   errno == EAGAIN ? "the daemon is silent for 15 minutes" : strerror(errno));
  }
  *ret = (size_t)got;
  return CV_OK;
}

/* Reads the head of the answer, and what came with it; *ret_body is where its body begins. */
static enum cv_err read_head(struct receiver *receiver, size_t *ret_body, struct cv_why *why) {
  const char *end = NULL;
  while (end == NULL) {
    size_t got = 0;
    if (receiver->n == HEAD_BYTES - 1) {
      return cv_fail(why, CV_ERR_IO, "%s: the head of the answer is too long", receiver->path);
    }
    CV_TRY(read_some(receiver, receiver->head + receiver->n, HEAD_BYTES - 1 - receiver->n, &got, why));
    if (got == 0) {
      return cv_fail(why, CV_ERR_IO, "%s: closed without an answer", receiver->path);
    }
    receiver->n += got;
    receiver->head[receiver->n] = '\0';
    end = strstr(receiver->head, "\r\n\r\n");
  }
  *ret_body = (size_t)(end + 4 - receiver->head);
  return CV_OK;
}

/* The length that the head states; false if it states none. */
static bool find_length(const char *head, uint64_t *ret) {
  static const char name[] = "\r\nContent-Length:";
  const char *line = strcasestr(head, name);
  char *end = NULL;
  unsigned long long length = line == NULL ? 0 : strtoull(line + sizeof(name) - 1, &end, 10);
  if (line == NULL || *end != '\r') {
    return false;
  }
  *ret = length;
  return true;
}

static enum cv_err refused(struct receiver *receiver, size_t body, struct cv_why *why) {
  size_t got = 1;
  while (got > 0 && receiver->n < HEAD_BYTES - 1) {
    CV_TRY(read_some(receiver, receiver->head + receiver->n, HEAD_BYTES - 1 - receiver->n, &got, why));
    receiver->n += got;
  }
  receiver->head[receiver->n] = '\0';
  const char *reason = receiver->head + body;
  return cv_fail(why, CV_ERR_STATE, "%.*s", (int)strcspn(reason, "\r\n"), reason);
}

static enum cv_err write_all(const struct receiver *receiver, const char *bytes, size_t n, struct cv_why *why) {
  for (size_t at = 0; at < n;) {
    ssize_t written = write(receiver->fd, bytes + at, n - at);
    if (written < 0 && errno != EINTR) {
      return cv_fail(why, CV_ERR_IO, "cannot write: %s", strerror(errno));
    }
    at += written > 0 ? (size_t)written : 0;
  }
  return CV_OK;
}

/* Writes what has arrived to the disk bit by bit: one long sync at the end would hold up the daemon's commits, which
 * are often on the same disk. */
static void trickle(const struct receiver *receiver, uint64_t have, size_t got) {
  uint64_t part = have / TRICKLE_BYTES;
  if (part != (have - got) / TRICKLE_BYTES) {
    (void)sync_file_range(receiver->fd, (off_t)((part - 1) * TRICKLE_BYTES), TRICKLE_BYTES, SYNC_FILE_RANGE_WRITE);
    if (part > 1) { /* not more than two parts on their way */
      (void)sync_file_range(receiver->fd, (off_t)((part - 2) * TRICKLE_BYTES), TRICKLE_BYTES,
                            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    }
  }
}

static enum cv_err read_body(struct receiver *receiver, size_t body, uint64_t length, struct cv_why *why) {
  static char block[BLOCK_BYTES];
  uint64_t have = receiver->n - body;
  CV_TRY(write_all(receiver, receiver->head + body, receiver->n - body, why));
  while (have < length) {
    size_t got = 0;
    CV_TRY(read_some(receiver, block, sizeof(block), &got, why));
    if (got == 0) {
      return cv_fail(why, CV_ERR_IO, "%s: the copy broke off after %llu of %llu bytes", receiver->path,
                     (unsigned long long)have, (unsigned long long)length);
    }
    CV_TRY(write_all(receiver, block, got, why));
    have += got;
    trickle(receiver, have, got);
  }
  return have == length ? CV_OK : cv_fail(why, CV_ERR_IO, "%s: more bytes than stated", receiver->path);
}

static enum cv_err converse(struct receiver *receiver, uint64_t *ret_bytes, struct cv_why *why) {
  size_t body = 0;
  uint64_t length = 0;
  CV_TRY(call(receiver, why));
  CV_TRY(read_head(receiver, &body, why));
  if (strncmp(receiver->head, "HTTP/1.", 7) != 0) {
    return cv_fail(why, CV_ERR_IO, "%s: not a daemon's admin socket; expected HTTP", receiver->path);
  }
  /* "HTTP/1.1 200": the status begins at the ninth character. */
  long status = strtol(receiver->head + 9, NULL, 10);
  if (status != 200) {
    return refused(receiver, body, why);
  }
  if (!find_length(receiver->head, &length)) {
    return cv_fail(why, CV_ERR_IO, "%s: an answer without its length", receiver->path);
  }
  CV_TRY(read_body(receiver, body, length, why));
  *ret_bytes = length;
  return CV_OK;
}

enum cv_err cv_admin_receive(const char *path, int fd, uint64_t *ret_bytes, struct cv_why *why) {
  struct receiver receiver = {.path = path, .socket = -1, .fd = fd};
  enum cv_err err = converse(&receiver, ret_bytes, why);
  if (receiver.socket >= 0) {
    (void)close(receiver.socket);
  }
  return err;
}
