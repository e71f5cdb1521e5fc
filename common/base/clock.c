/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 5 };

/* The file as it is mapped; NULL: the system's clocks. */
static struct {
  _Atomic uint64_t mono_ms, wall_ms;
  struct {
    _Atomic uint64_t pid, seen_ms;
  } follower[CV_CLOCK_FOLLOWERS];
} * shared;
static size_t own; /* entry */

_Static_assert(sizeof(*shared) == sizeof(struct cv_clock_file), "an atomic number is as large as a plain one");

static uint64_t read_ms(clockid_t id) {
  struct timespec now;
  (void)clock_gettime(id, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t cv_clock_mono_ms(void) {
  return shared == NULL ? read_ms(CLOCK_MONOTONIC) : atomic_load(&shared->mono_ms);
}

uint64_t cv_clock_wall_ms(void) {
  return shared == NULL ? read_ms(CLOCK_REALTIME) : atomic_load(&shared->wall_ms);
}

/* ---- of a test ---- */

static enum cv_err map(int fd, const char *path, void **ret, struct cv_why *why) {
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size != sizeof(*shared)) {
    return cv_fail(why, CV_ERR_FORMAT, "%s: not a test's clock; expected a file of %zu bytes", path, sizeof(*shared));
  }
  void *at = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot map the clock: %s", path, strerror(errno));
  }
  *ret = at;
  return CV_OK;
}

static enum cv_err take_entry(const char *path, struct cv_why *why) {
  for (own = 0; own < CV_CLOCK_FOLLOWERS; own++) {
    uint64_t nobody = 0;
    if (atomic_compare_exchange_strong(&shared->follower[own].pid, &nobody, (uint64_t)getpid())) {
      return CV_OK;
    }
  }
  (void)munmap(shared, sizeof(*shared));
  shared = NULL;
  return cv_fail(why, CV_ERR_LIMIT, "%s: %d processes have followed this clock; expected fewer", path,
                 CV_CLOCK_FOLLOWERS);
}

enum cv_err cv_clock_follow(const char *path, struct cv_why *why) {
  void *at = NULL;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot open the clock: %s", path, strerror(errno));
  }
  enum cv_err err = map(fd, path, &at, why);
  (void)close(fd);
  CV_TRY(err);
  shared = at;
  return take_entry(path, why);
}

bool cv_clock_is_followed(void) {
  return shared != NULL;
}

unsigned cv_clock_sleep_ms(uint64_t ms) {
  uint64_t most = shared == NULL ? INT_MAX : LOOK_MS;
  return (unsigned)(ms < most ? ms : most);
}

void cv_clock_tell_seen(uint64_t mono_ms) {
  if (shared != NULL) {
    atomic_store(&shared->follower[own].seen_ms, mono_ms);
  }
}
