/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a daemon tells the service manager that it is alive: three times in the manager's interval, from the loop,
 * unless the storage stands still. Pure.
 *
 * A long commit is healthy as long as it makes progress, so its length does not count, only the time since its last
 * step. The storage may take a whole interval for one step, and the manager waits for another one after the last sign
 * of life. So no process is restarted whose disk answers within an interval, and one whose disk does not is restarted
 * after at most two.
 */
#ifndef CV_DAEMON_WATCHDOG_H
#define CV_DAEMON_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct cv_watchdog {
  /* private */
  uint64_t interval_ms, next_ms, moved_ms, steps;
  bool stands;
};

/* Starts; `interval_ms` 0: the manager does not watch. */
void cv_watchdog_start(struct cv_watchdog *dog, uint64_t interval_ms, uint64_t now_ms);
/*
 * Call several times in an interval, from the loop. `is_busy`: a commit runs; `steps` grows with each of its steps, and
 * with each commit. Returns true if a sign of life is due.
 */
bool cv_watchdog_is_due(struct cv_watchdog *dog, uint64_t now_ms, bool is_busy, uint64_t steps);
/* After it: whether the storage stands still. */
static inline bool cv_watchdog_stands(const struct cv_watchdog *dog) {
  return dog->stands;
}

#endif
