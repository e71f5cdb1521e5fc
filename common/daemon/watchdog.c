/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/watchdog.h"

void cv_watchdog_start(struct cv_watchdog *dog, uint64_t interval_ms, uint64_t now_ms) {
  *dog = (struct cv_watchdog){.interval_ms = interval_ms, .next_ms = now_ms, .moved_ms = now_ms};
}

bool cv_watchdog_is_due(struct cv_watchdog *dog, uint64_t now_ms, bool is_busy, uint64_t steps) {
  if (dog->interval_ms == 0) {
    return false;
  }
  if (!is_busy || steps != dog->steps) {
    dog->steps = steps;
    dog->moved_ms = now_ms;
  }
  dog->stands = now_ms - dog->moved_ms >= dog->interval_ms;
  if (dog->stands || now_ms < dog->next_ms) {
    return false;
  }
  dog->next_ms = now_ms + dog->interval_ms / 3;
  return true;
}
