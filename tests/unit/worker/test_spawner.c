/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker hears of the process that starts its programs, whenever that one ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/err.h"
#include "worker/spawner.h"

/* The worker's side; `*theirs` is the other one. */
static struct cv_spawner linked(int *theirs) {
  int ends[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  *theirs = ends[1];
  return (struct cv_spawner){.socket = ends[0]};
}

static void test_nothing_is_heard_while_nothing_is_said(void **state) {
  struct cv_spawner_report report;
  int theirs;
  struct cv_spawner spawner = linked(&theirs);
  cv_spawner_run(&spawner, 3);
  assert_false(cv_spawner_next(&spawner, &report));
  (void)close(spawner.socket);
  (void)close(theirs);
}

/* Its end is the same news whether or not it has read the last order. */
static void test_its_end_is_heard(void **state) {
  for (int orders = 0; orders < 2; orders++) {
    struct cv_spawner_report report;
    int theirs;
    struct cv_spawner spawner = linked(&theirs);
    if (orders > 0) {
      cv_spawner_run(&spawner, 5);
    }
    (void)close(theirs);
    assert_true(cv_spawner_next(&spawner, &report));
    assert_int_equal(report.what, CV_SPAWNER_GONE);
    (void)close(spawner.socket);
  }
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_is_heard_while_nothing_is_said),
      cmocka_unit_test(test_its_end_is_heard),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
