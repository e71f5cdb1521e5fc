/* SPDX-License-Identifier: Apache-2.0 */
/* A test's clock, and timers that follow it. Once it is followed a process cannot go back: the last tests use it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/net/timer.h"
#include "tests/support/own_folder.h"

static struct cv_clock_file *made(const char *name, size_t bytes) {
  int fd = open(folder_file(&folder, name), O_RDWR | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
  void *at = mmap(NULL, sizeof(struct cv_clock_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  assert_ptr_not_equal(at, MAP_FAILED);
  (void)close(fd);
  return at;
}

static void is_refused(const char *name, enum cv_err expected, const char *line) {
  struct cv_why why;
  assert_int_equal(cv_clock_follow(folder_file(&folder, name), &why), expected);
  assert_non_null(strstr(why.text, line));
  assert_null(strchr(why.text, '\n'));
}

static void test_a_file_that_is_no_clock_is_refused(void **state) {
  is_refused("none", CV_ERR_IO, "none: cannot open the clock: No such file or directory");
  (void)made("short", sizeof(struct cv_clock_file) - 8);
  is_refused("short", CV_ERR_FORMAT, "short: not a test's clock; expected a file of 4096 bytes");
  assert_false(cv_clock_is_followed());
}

static void test_a_clock_that_all_places_of_are_taken_is_refused(void **state) {
  struct cv_clock_file *clock = made("full", sizeof(*clock));
  for (size_t i = 0; i < CV_CLOCK_FOLLOWERS; i++) {
    clock->follower[i].pid = i + 1;
  }
  pid_t child = fork();
  if (child == 0) { /* of its own: it follows no clock afterwards */
    is_refused("full", CV_ERR_LIMIT, "full: 255 processes have followed this clock; expected fewer");
    _exit(cv_clock_is_followed());
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* ---- timers ---- */

struct limit {
  struct cv_timer timer;
  unsigned times;
};

static void on_due(struct cv_timer *timer) {
  struct limit *limit = timer->uv.data;
  limit->times++;
}

static void start(uv_loop_t *loop, struct limit *limit, uint64_t ms) {
  *limit = (struct limit){.times = 0};
  cv_timer_init(loop, &limit->timer, limit);
  cv_timer_start(&limit->timer, on_due, ms);
}

static void turn(uv_timer_t *timer) {
  uv_stop(timer->loop);
}

/* Long enough for every timer to look at the clock, twice. */
static void pass(uv_loop_t *loop) {
  uv_timer_t real;
  assert_int_equal(uv_timer_init(loop, &real), 0);
  assert_int_equal(uv_timer_start(&real, turn, 20, 0), 0);
  (void)uv_run(loop, UV_RUN_DEFAULT);
  uv_close((uv_handle_t *)&real, NULL);
  (void)uv_run(loop, UV_RUN_NOWAIT);
}

static void test_without_a_test_s_clock_time_passes(void **state) {
  uv_loop_t loop;
  struct limit soon, later, stopped;
  assert_int_equal(uv_loop_init(&loop), 0);
  start(&loop, &soon, 1);
  start(&loop, &later, 3600000);
  start(&loop, &stopped, 1);
  cv_timer_stop(&stopped.timer);
  uint64_t began_ms = cv_timer_now_ms(&loop), wall_ms = cv_clock_wall_ms();
  pass(&loop);
  assert_int_equal(soon.times, 1);
  assert_int_equal(later.times, 0);
  assert_int_equal(stopped.times, 0);
  assert_true(cv_timer_now_ms(&loop) > began_ms);
  assert_true(cv_clock_wall_ms() > wall_ms);
  assert_int_equal(cv_clock_sleep_ms(7777), 7777);
  cv_timer_close(&soon.timer, NULL);
  cv_timer_close(&later.timer, NULL);
  cv_timer_close(&stopped.timer, NULL);
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_with_one_a_limit_is_reached_when_it_says_so(void **state) {
  struct cv_clock_file *clock = made("clock", sizeof(*clock));
  uv_loop_t loop;
  struct limit minute, hour, again;
  clock->mono_ms = 5000;
  clock->wall_ms = 1700000000000;
  clock->follower[0].pid = 1; /* another process */
  assert_int_equal(cv_clock_follow(folder_file(&folder, "clock"), NULL), CV_OK);
  assert_int_equal(clock->follower[1].pid, getpid());
  assert_int_equal(uv_loop_init(&loop), 0);
  start(&loop, &minute, 60000);
  start(&loop, &hour, 3600000);
  start(&loop, &again, 30);
  pass(&loop);
  assert_int_equal(cv_timer_now_ms(&loop), 5000);
  assert_int_equal(cv_clock_wall_ms(), 1700000000000);
  assert_int_equal(minute.times + hour.times + again.times, 0);
  clock->mono_ms += 59999;
  pass(&loop);
  assert_int_equal(again.times, 1);
  assert_int_equal(minute.times, 0);
  cv_timer_start(&again.timer, on_due, 30);
  clock->mono_ms += 1;
  pass(&loop);
  assert_int_equal(minute.times, 1);
  clock->mono_ms += 3600000;
  pass(&loop);
  pass(&loop);
  assert_int_equal(minute.times, 1);
  assert_int_equal(hour.times, 1);
  assert_int_equal(again.times, 2);
  assert_true(cv_clock_sleep_ms(7777) < 100);
  assert_int_equal(cv_clock_sleep_ms(2), 2);
  cv_clock_tell_seen(4711);
  assert_int_equal(clock->follower[1].seen_ms, 4711);
  assert_int_equal(clock->follower[0].seen_ms, 0);
  cv_timer_close(&minute.timer, NULL);
  cv_timer_close(&hour.timer, NULL);
  cv_timer_close(&again.timer, NULL);
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_file_that_is_no_clock_is_refused),
      cmocka_unit_test(test_a_clock_that_all_places_of_are_taken_is_refused),
      cmocka_unit_test(test_without_a_test_s_clock_time_passes),
      cmocka_unit_test(test_with_one_a_limit_is_reached_when_it_says_so),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
