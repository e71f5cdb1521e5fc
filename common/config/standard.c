/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int lost; /* errno of the first write to standard output that has failed; 0: none has */

/* The reading end of a pipe that nobody writes to: reading gives the end of a file, writing an error. Its other end may
 * get one of the three numbers, too, and is then replaced. */
static void fill(void) {
  bool is_closed[STDERR_FILENO + 1];
  int ends[2], missing = 0;
  for (int fd = 0; fd <= STDERR_FILENO; fd++) {
    is_closed[fd] = fcntl(fd, F_GETFD) < 0 && errno == EBADF;
    missing += is_closed[fd];
  }
  if (missing == 0 || pipe(ends) != 0) {
    return;
  }
  for (int fd = 0; fd <= STDERR_FILENO; fd++) {
    if (is_closed[fd]) {
      (void)dup2(ends[0], fd);
    }
  }
  for (int i = 0; i < 2; i++) {
    if (ends[i] > STDERR_FILENO) {
      (void)close(ends[i]);
    }
  }
}

int cv_standard_nothing(void) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return -1;
  }
  (void)close(ends[1]);
  return ends[0];
}

/* Whoever shares the pipe or terminal may have made it non-blocking. */
static bool may_go_on(void) {
  struct pollfd room = {.fd = STDOUT_FILENO, .events = POLLOUT};
  return errno == EINTR || (errno == EAGAIN && poll(&room, 1, -1) > 0);
}

/* Of a stream's writes; as many bytes as could be written. A later failure has less to tell: its cause is the first. */
static ssize_t write_out(void *data, const char *bytes, size_t n) {
  size_t done = 0;
  (void)data;
  while (done < n) {
    ssize_t wrote = write(STDOUT_FILENO, bytes + done, n - done);
    if (wrote < 0 && !may_go_on()) {
      lost = lost == 0 ? errno : lost;
      return 0;
    }
    done += wrote > 0 ? (size_t)wrote : 0;
  }
  return (ssize_t)n;
}

void cv_standard_open(void) {
  fill();
  (void)signal(SIGPIPE, SIG_IGN);
  (void)signal(SIGXFSZ, SIG_IGN);
  /* A terminal keeps the stream that it has: its size is asked for. */
  if (isatty(STDOUT_FILENO) == 0) {
    FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_out});
    stdout = out == NULL ? stdout : out;
  }
}

void cv_standard_lose(void) {
  lost = lost == 0 ? ENOMEM : lost;
}

const char *cv_standard_reason(void) {
  static char reason[128];
  (void)snprintf(reason, sizeof(reason), "standard output: %s", lost == 0 ? "cannot be written" : strerror(lost));
  return reason;
}

int cv_standard_close(const char *program, int status) {
  bool is_written = fflush(stdout) == 0;
  lost = is_written || lost != 0 ? lost : errno;
  /* Some file systems tell only now that the disk is full. */
  if (close(STDOUT_FILENO) != 0 && errno != EINTR && lost == 0) {
    lost = errno;
  }
  is_written = is_written && lost == 0 && ferror(stdout) == 0;
  if (!is_written && status == 0 && lost != EPIPE) {
    (void)fprintf(stderr, "%s: %s\n", program, cv_standard_reason());
  }
  return status == 0 && (!is_written || ferror(stderr) != 0) ? 1 : status;
}
