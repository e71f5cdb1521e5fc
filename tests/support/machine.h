/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features that a bare container may lack. A test that needs one says `if (lacks_...()) return;` and counts as skipped:
 * cmocka's own skip() prints "not ok", which Meson takes for a failure. Include after cmocka.h.
 */
#ifndef CV_TESTS_MACHINE_H
#define CV_TESTS_MACHINE_H

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* tests/suites.py reads the reason from the line before the test's. */
static inline bool is_skipped(const char *what, const char *why) {
  print_message("# skipped: %s: %s\n", what, why);
  return true;
}

static inline bool lacks_localhost(void) {
  const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  struct addrinfo *found = NULL;
  int failed = getaddrinfo("localhost", "1", &hints, &found);
  if (failed != 0) {
    return is_skipped("the name localhost cannot be looked up here", gai_strerror(failed));
  }
  freeaddrinfo(found);
  return false;
}

/* Landlock and seccomp. */
static inline bool lacks_sandbox(void) {
  if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 1) {
    return is_skipped("no Landlock here", strerror(errno));
  }
  return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0 && is_skipped("no seccomp here", strerror(errno));
}

#endif
