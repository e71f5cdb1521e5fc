/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/text.h"

enum { LOOK_MS = 50 };

/* Returns errno if the file cannot be read, otherwise 0. A bind mount of a missing file creates a folder in its
 * place. */
static int trouble_with(const char *path) {
  struct stat found;
  if (stat(path, &found) != 0 || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0) {
    return errno;
  }
  return S_ISDIR(found.st_mode) ? EISDIR : 0;
}

/* Returns the first file that cannot be read, or NULL. */
static const char *missing(const struct cv_channel_settings *channel, int *ret_trouble) {
  const char *const files[] = {channel->ca, channel->cert, channel->key, channel->denied, channel->crl};
  for (size_t i = 0; i < CV_COUNT(files); i++) {
    int trouble = files[i] == NULL ? 0 : trouble_with(files[i]);
    if (trouble != 0) {
      *ret_trouble = trouble;
      return files[i];
    }
  }
  return NULL;
}

/* Sleeps; returns true if a signal of the set arrives. */
static bool pause_ended(const sigset_t *signals, uint64_t ms) {
  const struct timespec pause = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
  return sigtimedwait(signals, NULL, &pause) > 0;
}

/* Polls for the files; the signals must be blocked. */
static int wait_blocked(const char *program, const struct cv_channel_settings *channel, const sigset_t *signals) {
  const struct cv_text_time most = cv_text_time(channel->wait_ms);
  uint64_t end_ms = cv_clock_mono_ms() + channel->wait_ms;
  int trouble = 0;
  for (const char *file; (file = missing(channel, &trouble)) != NULL;) {
    uint64_t now_ms = cv_clock_mono_ms();
    if (now_ms >= end_ms) {
      cv_log_early(program, CV_LOG_ERROR, "%s: %s after %s; expected a readable file (wait_for_files)", file,
                   trouble == ENOENT ? "still missing" : strerror(trouble), most.text);
      return CV_CHANNEL_ABSENT;
    }
    if (pause_ended(signals, end_ms - now_ms < LOOK_MS ? end_ms - now_ms : LOOK_MS)) {
      cv_log_early(program, CV_LOG_INFO, "stopped by a signal while waiting for %s", file);
      return CV_CHANNEL_STOPPED;
    }
  }
  return -1;
}

int cv_channel_wait(const char *program, const struct cv_channel_settings *channel) {
  int trouble;
  const char *file = channel->wait_ms == 0 ? NULL : missing(channel, &trouble);
  if (file == NULL) {
    return -1;
  }
  sigset_t signals, before;
  (void)sigemptyset(&signals);
  (void)sigaddset(&signals, SIGTERM);
  (void)sigaddset(&signals, SIGINT);
  /* Blocked and taken by sigtimedwait(): a signal that comes between a look and the sleep after it is not lost. */
  (void)sigprocmask(SIG_BLOCK, &signals, &before);
  cv_log_early(program, CV_LOG_INFO, "waiting up to %s for %s", cv_text_time(channel->wait_ms).text, file);
  int status = wait_blocked(program, channel, &signals);
  (void)sigprocmask(SIG_SETMASK, &before, NULL);
  return status;
}
