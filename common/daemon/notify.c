/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/notify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/daemon/datagram.h"

enum { STATUS_BYTES = 256, TRIES = 20 /* of CV_DATAGRAM_WAIT_MS each */ };

static struct cv_datagram manager = {.fd = -1};
static uint64_t watchdog_ms;
static char last_status[STATUS_BYTES];

/* A number from the environment; 0 if it is absent or malformed. */
static uint64_t number_of(const char *name) {
  const char *text = getenv(name);
  return text == NULL || text[0] == '\0' || text[strspn(text, "0123456789")] != '\0' ? 0 : strtoull(text, NULL, 10);
}

void cv_notify_open(void) {
  const char *path = getenv("NOTIFY_SOCKET");
  struct cv_why why;
  if (path != NULL && manager.fd < 0 && cv_datagram_open(path, &manager, &why) != CV_OK) {
    cv_log(CV_LOG_WARN, "NOTIFY_SOCKET cannot be used: %s; the service manager is told nothing", why.text);
  }
  /* Another process of the same unit may be meant. */
  uint64_t pid = number_of("WATCHDOG_PID");
  bool is_ours = getenv("WATCHDOG_PID") == NULL || pid == (uint64_t)getpid();
  watchdog_ms = manager.fd >= 0 && is_ours ? number_of("WATCHDOG_USEC") / 1000 : 0;
  (void)unsetenv("NOTIFY_SOCKET");
  (void)unsetenv("WATCHDOG_USEC");
  (void)unsetenv("WATCHDOG_PID");
}

uint64_t cv_notify_watchdog_ms(void) {
  return watchdog_ms;
}

/* `tries`: how often it is repeated while the manager is busy. */
static void tell(unsigned tries, const char *fmt, ...) CV_PRINTF(2, 3);
static void tell(unsigned tries, const char *fmt, ...) {
  char text[STATUS_BYTES + 128];
  va_list args;
  if (manager.fd < 0) {
    return;
  }
  va_start(args, fmt);
  int n = vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  CV_REQUIRE(n > 0 && (size_t)n < sizeof(text));
  enum cv_err err = CV_ERR_LIMIT;
  for (unsigned i = 0; i < tries && err == CV_ERR_LIMIT; i++) {
    manager.is_slow = tries == 1;
    err = cv_datagram_send(&manager, text, (size_t)n);
  }
}

void cv_notify_ready(void) {
  tell(TRIES, "READY=1");
}

void cv_notify_reloading(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  /* Not rounded: an earlier time than the manager's request counts as the answer to an earlier one. */
  uint64_t us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
  tell(TRIES, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, us);
}

void cv_notify_stopping(uint64_t most_ms) {
  tell(TRIES, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64, most_ms * 1000);
}

void cv_notify_extend(uint64_t more_ms) {
  tell(TRIES, "EXTEND_TIMEOUT_USEC=%" PRIu64, more_ms * 1000);
}

void cv_notify_alive(void) {
  tell(1, "WATCHDOG=1");
}

void cv_notify_status(const char *text) {
  char line[STATUS_BYTES];
  cv_text_print(line, sizeof(line), "%s", text);
  if (strcmp(line, last_status) != 0) {
    memcpy(last_status, line, sizeof(line));
    tell(1, "STATUS=%s", line);
  }
}
