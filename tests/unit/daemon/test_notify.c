/* SPDX-License-Identifier: Apache-2.0 */
/* What a service manager receives, through a socket of the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/daemon/datagram.h"
#include "common/daemon/notify.h"

struct manager {
  char folder[64];
  struct sockaddr_un address;
  socklen_t length;
  int fd;
};

/* `abstract`: an address without a file. */
static void manager_open(struct manager *manager, bool abstract) {
  memset(manager, 0, sizeof(*manager));
  (void)snprintf(manager->folder, sizeof(manager->folder), "/tmp/crowdveil-notify-XXXXXX");
  assert_non_null(mkdtemp(manager->folder));
  manager->address.sun_family = AF_UNIX;
  char *path = manager->address.sun_path;
  int n = snprintf(path + abstract, sizeof(manager->address.sun_path) - 1, "%s/socket", manager->folder);
  manager->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
  manager->fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  assert_true(manager->fd >= 0);
  assert_int_equal(bind(manager->fd, (const struct sockaddr *)&manager->address, manager->length), 0);
}

static void manager_close(struct manager *manager) {
  (void)close(manager->fd);
  (void)unlink(manager->address.sun_path);
  (void)rmdir(manager->folder);
}

static const char *path_of(const struct manager *manager, char *to, size_t size) {
  bool abstract = manager->address.sun_path[0] == '\0';
  (void)snprintf(to, size, "%s%s", abstract ? "@" : "", manager->address.sun_path + abstract);
  return to;
}

/* The next datagram; "" if there is none. */
static void take(const struct manager *manager, char *to, size_t size) {
  ssize_t n = recv(manager->fd, to, size - 1, MSG_DONTWAIT);
  to[n > 0 ? n : 0] = '\0';
}

static void expect(const struct manager *manager, const char *expected) {
  char text[512];
  take(manager, text, sizeof(text));
  assert_string_equal(text, expected);
}

static uint64_t now_us(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void tell_all(const struct manager *manager) {
  char text[512];
  cv_notify_ready();
  expect(manager, "READY=1");
  uint64_t before = now_us();
  cv_notify_reloading();
  take(manager, text, sizeof(text));
  static const char reloading[] = "RELOADING=1\nMONOTONIC_USEC=";
  assert_int_equal(strncmp(text, reloading, sizeof(reloading) - 1), 0);
  assert_in_range(strtoull(text + sizeof(reloading) - 1, NULL, 10), before, now_us());
  cv_notify_extend(1500);
  expect(manager, "EXTEND_TIMEOUT_USEC=1500000");
  cv_notify_alive();
  expect(manager, "WATCHDOG=1");
  cv_notify_stopping(2);
  expect(manager, "STOPPING=1\nEXTEND_TIMEOUT_USEC=2000");
}

static void tell_status(const struct manager *manager) {
  char text[2000], expected[2000] = "STATUS=";
  cv_notify_status("campaigns open: 3");
  expect(manager, "STATUS=campaigns open: 3");
  cv_notify_status("campaigns open: 3");
  expect(manager, "");
  /* A name in a status cannot give an order of its own, and a long one does not take more room. */
  cv_notify_status("a\nSTOPPING=1");
  expect(manager, "STATUS=a?STOPPING=1");
  memset(text, 'x', sizeof(text));
  text[sizeof(text) - 1] = '\0';
  cv_notify_status(text);
  memset(expected + 7, 'x', 255);
  expect(manager, expected);
}

static void set_environment(const char *path, const char *usec, const char *pid) {
  (void)unsetenv("WATCHDOG_PID");
  assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0);
  assert_int_equal(setenv("WATCHDOG_USEC", usec, 1), 0);
  if (pid != NULL) {
    assert_int_equal(setenv("WATCHDOG_PID", pid, 1), 0);
  }
}

/* In a child each, since a process has one manager. */
static void in_child(void (*test)(const struct manager *manager), const struct manager *manager) {
  int status;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    test(manager);
    _exit(0); /* a failed assertion does not come here */
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void child_of_a_manager(const struct manager *manager) {
  char path[128], pid[32];
  (void)snprintf(pid, sizeof(pid), "%d", getpid());
  set_environment(path_of(manager, path, sizeof(path)), "30000000", pid);
  cv_notify_open();
  assert_null(getenv("NOTIFY_SOCKET"));
  assert_null(getenv("WATCHDOG_USEC"));
  assert_null(getenv("WATCHDOG_PID"));
  assert_int_equal(cv_notify_watchdog_ms(), 30000);
  tell_all(manager);
  tell_status(manager);
}

static void child_that_is_not_watched(const struct manager *manager) {
  char path[128];
  set_environment(path_of(manager, path, sizeof(path)), "30000000", "1");
  cv_notify_open();
  assert_int_equal(cv_notify_watchdog_ms(), 0);
  cv_notify_ready();
  expect(manager, "READY=1");
}

static void child_with_nonsense(const struct manager *manager) {
  static const char *const wrong[] = {"", "relative", "@", "/nowhere/socket", "vsock:2:1234"};
  for (size_t i = 0; i < CV_COUNT(wrong); i++) {
    set_environment(wrong[i], "12x", NULL);
    cv_notify_open();
    cv_notify_ready();
    assert_int_equal(cv_notify_watchdog_ms(), 0);
  }
  char long_path[300];
  memset(long_path, '/', sizeof(long_path));
  long_path[sizeof(long_path) - 1] = '\0';
  set_environment(long_path, "1", NULL);
  cv_notify_open();
  cv_notify_ready();
  expect(manager, "");
}

static void each(bool abstract, void (*test)(const struct manager *manager)) {
  struct manager manager;
  manager_open(&manager, abstract);
  in_child(test, &manager);
  manager_close(&manager);
}

static void a_manager_hears_everything(void **state) {
  each(false, child_of_a_manager);
  each(true, child_of_a_manager);
}

static void a_watchdog_of_another_process_is_not_ours(void **state) {
  each(false, child_that_is_not_watched);
}

static void a_wrong_environment_does_no_harm(void **state) {
  each(false, child_with_nonsense);
}

/* ---- the socket ---- */

static void a_receiver_that_comes_back_is_found(void **state) {
  struct manager manager;
  struct cv_datagram to;
  struct cv_why why;
  manager_open(&manager, false);
  assert_int_equal(cv_datagram_open(manager.address.sun_path, &to, &why), CV_OK);
  assert_int_equal(cv_datagram_send(&to, "a", 1), CV_OK);
  expect(&manager, "a");
  (void)close(manager.fd);
  assert_int_equal(cv_datagram_send(&to, "b", 1), CV_ERR_CLOSED);
  (void)unlink(manager.address.sun_path);
  assert_int_equal(cv_datagram_send(&to, "c", 1), CV_ERR_CLOSED);
  manager.fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  assert_int_equal(bind(manager.fd, (const struct sockaddr *)&manager.address, manager.length), 0);
  assert_int_equal(cv_datagram_send(&to, "d", 1), CV_OK);
  expect(&manager, "d");
  (void)close(to.fd);
  manager_close(&manager);
}

/* A receiver that takes nothing costs one wait, not one for each datagram. */
static void a_receiver_that_hangs_is_not_waited_for(void **state) {
  struct manager manager;
  struct cv_datagram to;
  struct cv_why why;
  enum cv_err err = CV_OK;
  manager_open(&manager, false);
  assert_int_equal(cv_datagram_open(manager.address.sun_path, &to, &why), CV_OK);
  for (unsigned i = 0; i < 100000 && err == CV_OK; i++) {
    err = cv_datagram_send(&to, "x", 1);
  }
  assert_int_equal(err, CV_ERR_LIMIT);
  uint64_t began = now_us();
  for (unsigned i = 0; i < 100; i++) {
    assert_int_equal(cv_datagram_send(&to, "x", 1), CV_ERR_LIMIT);
  }
  assert_true(now_us() - began < 100 * CV_DATAGRAM_WAIT_MS * 1000 / 2);
  expect(&manager, "x");
  assert_int_equal(cv_datagram_send(&to, "x", 1), CV_OK);
  (void)close(to.fd);
  manager_close(&manager);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_manager_hears_everything),
      cmocka_unit_test(a_watchdog_of_another_process_is_not_ours),
      cmocka_unit_test(a_wrong_environment_does_no_harm),
      cmocka_unit_test(a_receiver_that_comes_back_is_found),
      cmocka_unit_test(a_receiver_that_hangs_is_not_waited_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
