/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct sink {
  int fd, error; /* errno of the first failure; 0: none */
};

static ssize_t put(void *data, const char *bytes, size_t n) {
  struct sink *sink = data;
  for (size_t done = 0; done < n;) {
    ssize_t wrote = write(sink->fd, bytes + done, n - done);
    if (wrote < 0 && errno != EINTR) {
      sink->error = sink->error == 0 ? errno : sink->error;
      return 0;
    }
    done += wrote > 0 ? (size_t)wrote : 0;
  }
  return (ssize_t)n;
}

static int end(void *data) {
  struct sink *sink = data;
  int error = sink->error;
  if (close(sink->fd) != 0 && error == 0) {
    error = errno;
  }
  free(sink);
  errno = error;
  return error == 0 ? 0 : -1;
}

FILE *cv_sink_of(int fd) {
  struct sink *sink = fd < 0 ? NULL : malloc(sizeof(*sink));
  FILE *file = NULL;
  if (sink != NULL) {
    *sink = (struct sink){.fd = fd};
    file = fopencookie(sink, "w", (cookie_io_functions_t){.write = put, .close = end});
  }
  if (file == NULL && fd >= 0) {
    free(sink);
    (void)close(fd);
    errno = ENOMEM;
  }
  return file;
}

FILE *cv_sink_open(const char *path) {
  return cv_sink_of(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
}
