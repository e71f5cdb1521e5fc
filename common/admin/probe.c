/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/probe.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/admin/path.h"
#include "common/base/clock.h"
#include "common/base/text.h"

enum { AGAIN_MS = 20, ANSWER_BYTES = 4096, SHOWN_BYTES = 60 };

struct probe {
  const char *path, *method, *url;
  int fd;
  unsigned limit_ms;
  uint64_t end_ms;
  size_t n; /* bytes of the answer */
  char answer[ANSWER_BYTES];
};

static int left_ms(const struct probe *probe) {
  uint64_t now_ms = cv_clock_mono_ms();
  return now_ms < probe->end_ms ? (int)(probe->end_ms - now_ms) : 0;
}

static enum cv_err fail_late(const struct probe *probe, struct cv_why *why) {
  return cv_fail(why, CV_ERR_IO, "%s: no answer within %s", probe->path, cv_text_time(probe->limit_ms).text);
}

static bool is_passing(int error) {
  return error == EAGAIN || error == EINTR;
}

/* Connects. If the socket's queue is full, poll() cannot wait for a place, so it retries. */
static enum cv_err call(struct probe *probe, const struct sockaddr_un *address, struct cv_why *why) {
  while (connect(probe->fd, (const struct sockaddr *)address, sizeof(*address)) != 0) {
    if (!is_passing(errno)) {
      return cv_fail(why, CV_ERR_IO, "%s: no daemon answers: %s", probe->path, strerror(errno));
    }
    if (left_ms(probe) == 0) {
      return fail_late(probe, why);
    }
    (void)poll(NULL, 0, AGAIN_MS);
  }
  return CV_OK;
}

/* A new socket's buffer holds the whole request. A failure is ignored: if the daemon has closed, its answer can
 * still be read. */
static void ask(const struct probe *probe) {
  char request[256];
  int n = snprintf(request, sizeof(request),
                   "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", probe->method,
                   probe->url);
  CV_REQUIRE(n > 0 && (size_t)n < sizeof(request));
  (void)send(probe->fd, request, (size_t)n, MSG_NOSIGNAL);
}

/* Reads until the daemon closes or the buffer is full. */
static enum cv_err receive(struct probe *probe, struct cv_why *why) {
  while (probe->n < sizeof(probe->answer) - 1) {
    struct pollfd ready = {.fd = probe->fd, .events = POLLIN};
    int left = left_ms(probe);
    if (left == 0) {
      return fail_late(probe, why);
    }
    /* Whatever poll() says, recv() below tells; only the time that is left matters. */
    (void)poll(&ready, 1, left);
    ssize_t n = recv(probe->fd, probe->answer + probe->n, sizeof(probe->answer) - 1 - probe->n, 0);
    if (n == 0 || (n < 0 && !is_passing(errno))) {
      return CV_OK;
    }
    probe->n += n > 0 ? (size_t)n : 0;
  }
  return CV_OK;
}

/* CV_OK for 200; then the first line of the body is copied. */
static enum cv_err judge(const struct probe *probe, char *line, size_t size, struct cv_why *why) {
  const char *answer = probe->answer;
  if (probe->n == 0) {
    return cv_fail(why, CV_ERR_IO, "%s: closed without an answer", probe->path);
  }
  /* "HTTP/1.1 200" has 12 characters; the status begins at the ninth. */
  if (strncmp(answer, "HTTP/1.", 7) != 0 || probe->n < 12) {
    size_t first = strcspn(answer, "\r\n");
    return cv_fail(why, CV_ERR_IO, "%s: answers \"%.*s\"; expected HTTP", probe->path,
                   first < SHOWN_BYTES ? (int)first : SHOWN_BYTES, answer);
  }
  long status = strtol(answer + 9, NULL, 10);
  const char *body = strstr(answer, "\r\n\r\n");
  size_t words = body == NULL ? 0 : strcspn(body + 4, "\r\n");
  if (status == 200) {
    cv_text_print(line, size, "%.*s", (int)words, body == NULL ? "" : body + 4);
    return CV_OK;
  }
  /* 503 has the daemon's own reason, which is all that a person needs. */
  if (status == 503 && words > 0) {
    return cv_fail(why, CV_ERR_STATE, "%.*s", (int)words, body + 4);
  }
  return cv_fail(why, CV_ERR_IO, "%s: answers %ld; expected 200, or 503 and a reason", probe->path, status);
}

static enum cv_err converse(struct probe *probe, const struct sockaddr_un *address, char *line, size_t size,
                            struct cv_why *why) {
  CV_TRY(call(probe, address, why));
  ask(probe);
  CV_TRY(receive(probe, why));
  return judge(probe, line, size, why);
}

enum cv_err cv_probe_ask(const char *path, const char *method, const char *url, unsigned limit_ms, char *line,
                         size_t size, struct cv_why *why) {
  struct probe probe = {
      .path = path, .method = method, .url = url, .limit_ms = limit_ms, .end_ms = cv_clock_mono_ms() + limit_ms};
  struct sockaddr_un address;
  CV_TRY(cv_admin_path(path, &address, why));
  probe.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe.fd < 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot create a socket: %s", path, strerror(errno));
  }
  enum cv_err err = converse(&probe, &address, line, size, why);
  (void)close(probe.fd);
  return err;
}

enum cv_err cv_probe_health(const char *path, unsigned limit_ms, struct cv_why *why) {
  char line[8]; /* "ok" */
  return cv_probe_ask(path, "GET", "/health", limit_ms, line, sizeof(line), why);
}

static enum cv_err fail_missing(struct cv_why *why) {
  return cv_fail(why, CV_ERR_INVALID, "missing setting admin, which --probe needs; expected the path of a Unix socket");
}

int cv_probe_run(const char *program, const char *path) {
  struct cv_why why;
  char line[sizeof(why.text)];
  enum cv_err err =
      path == NULL ? fail_missing(&why) : cv_probe_ask(path, "GET", "/health", CV_PROBE_MS, line, sizeof(line), &why);
  if (err == CV_OK) {
    (void)printf("%s: %s\n", program, line);
    return 0;
  }
  (void)fprintf(stderr, "%s: %s\n", program, why.text);
  return 1;
}
