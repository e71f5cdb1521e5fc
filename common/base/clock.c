/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/clock.h"

#include <time.h>

static uint64_t read_ms(clockid_t id) {
  struct timespec now;
  (void)clock_gettime(id, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t cv_clock_mono_ms(void) {
  return read_ms(CLOCK_MONOTONIC);
}

uint64_t cv_clock_wall_ms(void) {
  return read_ms(CLOCK_REALTIME);
}
