/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/link.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/text.h"

enum { LOOK_MS = 50 };

/* Why it cannot be read; 0 if it can. What a bind mount of a missing file makes is a folder. */
static int trouble_with(const char *path) {
  struct stat found;
  if (stat(path, &found) != 0 || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0) {
    return errno;
  }
  return S_ISDIR(found.st_mode) ? EISDIR : 0;
}

/* The first file that cannot be read; NULL if all can. */
static const char *missing(const struct cv_link_settings *link, int *ret_trouble) {
  const char *const files[] = {link->ca, link->cert, link->key, link->denied};
  for (size_t i = 0; i < CV_COUNT(files); i++) {
    int trouble = files[i] == NULL ? 0 : trouble_with(files[i]);
    if (trouble != 0) {
      *ret_trouble = trouble;
      return files[i];
    }
  }
  return NULL;
}

/* True if a signal of the set ends the pause. */
static bool pause_ended(const sigset_t *signals, uint64_t ms) {
  const struct timespec pause = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
  return sigtimedwait(signals, NULL, &pause) > 0;
}

/* With the signals blocked. */
static int wait_blocked(const char *program, const struct cv_link_settings *link, const sigset_t *signals) {
  const struct cv_text_time most = cv_text_time(link->wait_ms);
  uint64_t end_ms = cv_clock_mono_ms() + link->wait_ms;
  int trouble = 0;
  for (const char *file; (file = missing(link, &trouble)) != NULL;) {
    uint64_t now_ms = cv_clock_mono_ms();
    if (now_ms >= end_ms) {
      (void)fprintf(stderr, "%s: %s: %s after %s; expected a file, see wait_for_files\n", program, file,
                    trouble == ENOENT ? "not there" : strerror(trouble), most.text);
      return CV_LINK_ABSENT;
    }
    if (pause_ended(signals, end_ms - now_ms < LOOK_MS ? end_ms - now_ms : LOOK_MS)) {
      (void)fprintf(stderr, "%s: stopped by a signal, still waiting for %s\n", program, file);
      return CV_LINK_STOPPED;
    }
  }
  return -1;
}

int cv_link_wait(const char *program, const struct cv_link_settings *link) {
  int trouble;
  const char *file = link->wait_ms == 0 ? NULL : missing(link, &trouble);
  if (file == NULL) {
    return -1;
  }
  sigset_t signals, before;
  (void)sigemptyset(&signals);
  (void)sigaddset(&signals, SIGTERM);
  (void)sigaddset(&signals, SIGINT);
  (void)sigprocmask(SIG_BLOCK, &signals, &before);
  (void)fprintf(stderr, "%s: waiting up to %s for %s\n", program, cv_text_time(link->wait_ms).text, file);
  int status = wait_blocked(program, link, &signals);
  (void)sigprocmask(SIG_SETMASK, &before, NULL);
  return status;
}
