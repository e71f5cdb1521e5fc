/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon counts as alive while its loop and its storage go on, and no longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>

#include "common/daemon/watchdog.h"

enum { INTERVAL = 30000, TICK = 50 };

struct run {
  struct cv_watchdog dog;
  uint64_t now_ms, steps, last_ms; /* of the last sign of life */
};

static void start(struct run *run, uint64_t interval_ms) {
  *run = (struct run){.now_ms = 1000000, .last_ms = 1000000};
  cv_watchdog_start(&run->dog, interval_ms, run->now_ms);
}

/* Lets time pass; every `step_ms` (0: never) the storage makes a step. Returns the longest time without a sign. */
static uint64_t pass(struct run *run, uint64_t ms, bool is_busy, uint64_t step_ms) {
  uint64_t longest = 0;
  for (uint64_t passed = TICK; passed <= ms; passed += TICK) {
    run->now_ms += TICK;
    run->steps += step_ms != 0 && passed % step_ms == 0;
    if (cv_watchdog_is_due(&run->dog, run->now_ms, is_busy, run->steps)) {
      run->last_ms = run->now_ms;
    }
    longest = run->now_ms - run->last_ms > longest ? run->now_ms - run->last_ms : longest;
  }
  return longest;
}

static void an_idle_daemon_gives_signs_in_time(void **state) {
  struct run run;
  start(&run, INTERVAL);
  assert_in_range(pass(&run, 10 * INTERVAL, false, 0), INTERVAL / 4, INTERVAL / 2);
}

static void a_long_commit_that_goes_on_is_alive(void **state) {
  struct run run;
  start(&run, INTERVAL);
  assert_in_range(pass(&run, 100 * INTERVAL, true, INTERVAL / 2), 1, INTERVAL / 2);
  assert_false(cv_watchdog_stands(&run.dog));
}

/* The manager restarts it after two intervals at most, and not before one has passed. */
static void a_commit_that_stands_is_not(void **state) {
  struct run run;
  start(&run, INTERVAL);
  (void)pass(&run, INTERVAL, false, 0);
  uint64_t began_ms = run.now_ms;
  (void)pass(&run, 5 * INTERVAL, true, 0);
  assert_true(cv_watchdog_stands(&run.dog));
  assert_in_range(run.last_ms - began_ms, INTERVAL / 2, INTERVAL);
}

static void a_commit_that_ends_after_all_is_alive_again(void **state) {
  struct run run;
  start(&run, INTERVAL);
  (void)pass(&run, 3 * INTERVAL, true, 0);
  assert_true(cv_watchdog_stands(&run.dog));
  run.now_ms += TICK;
  assert_true(cv_watchdog_is_due(&run.dog, run.now_ms, false, run.steps));
  assert_false(cv_watchdog_stands(&run.dog));
}

/* Commit follows commit, and the loop never meets the storage idle. */
static void many_commits_are_progress(void **state) {
  struct run run;
  start(&run, INTERVAL);
  assert_in_range(pass(&run, 10 * INTERVAL, true, 100), 1, INTERVAL / 2);
}

/* A commit that begins long after the start has its own interval. */
static void the_first_commit_has_its_time(void **state) {
  struct run run;
  start(&run, INTERVAL);
  assert_true(cv_watchdog_is_due(&run.dog, run.now_ms, true, 0));
  assert_false(cv_watchdog_stands(&run.dog));
}

static void without_a_watchdog_there_are_no_signs(void **state) {
  struct run run;
  start(&run, 0);
  (void)pass(&run, INTERVAL, true, 0);
  assert_int_equal(run.last_ms, 1000000);
  assert_false(cv_watchdog_stands(&run.dog));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_idle_daemon_gives_signs_in_time),
      cmocka_unit_test(a_long_commit_that_goes_on_is_alive),
      cmocka_unit_test(a_commit_that_stands_is_not),
      cmocka_unit_test(a_commit_that_ends_after_all_is_alive_again),
      cmocka_unit_test(many_commits_are_progress),
      cmocka_unit_test(the_first_commit_has_its_time),
      cmocka_unit_test(without_a_watchdog_there_are_no_signs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
