/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/stalled.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/finding.h"

static bool path_of(const char *state, char ret[PATH_MAX]) {
  return snprintf(ret, PATH_MAX, "%s/" CV_STALLED_FILE, state) < PATH_MAX;
}

void cv_stalled_write(const char *state, const char *campaign, const char *why) {
  char path[PATH_MAX], line[1024];
  int n = snprintf(line, sizeof(line), "campaign \"%s\": %s\n", campaign, why);
  int fd =
      path_of(state, path) ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR) : -1;
  if (fd >= 0) {
    (void)!write(fd, line, n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1);
    (void)close(fd);
  }
}

void cv_stalled_clear(const char *state) {
  char path[PATH_MAX];
  if (path_of(state, path)) {
    (void)unlink(path);
  }
}
