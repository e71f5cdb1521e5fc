/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/log.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const char *program_name = "crowdveil";
static enum cv_log_level most = CV_LOG_INFO;

void cv_log_init(const char *program, enum cv_log_level level) {
  program_name = program;
  most = level;
}

void cv_log(enum cv_log_level level, const char *fmt, ...) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  if (level > most) {
    return;
  }
  char text[1024];
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  /* Texts of peers are in many lines: one with a line break could forge a second line. */
  for (char *c = text; *c != '\0'; c++) {
    if ((unsigned char)*c < 0x20 || *c == 0x7f) {
      *c = '?';
    }
  }
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  struct tm utc;
  (void)gmtime_r(&now.tv_sec, &utc);
  char stamp[32];
  (void)strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
  (void)fprintf(stderr, "%s.%03ldZ %s %s: %s\n", stamp, now.tv_nsec / 1000000, program_name, names[level], text);
}

void cv_log_peer(struct cv_log_limit *limit, const char *peer, const char *text, uint64_t now_ms) {
  if (cv_log_limit_allows(limit, peer, text, now_ms)) {
    cv_log(CV_LOG_INFO, "%s: %s", peer, text);
  }
}

void cv_log_suppressed(struct cv_log_limit *limit, uint64_t now_ms, bool early) {
  char line[320];
  while (cv_log_limit_next(limit, now_ms, early, line, sizeof(line))) {
    cv_log(CV_LOG_INFO, "%s", line);
  }
}
