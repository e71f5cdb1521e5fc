/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/logging.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/daemon/datagram.h"

#define JOURNAL "/run/systemd/journal/socket"

const char *const CV_LOGGING_FORMS[] = {"auto", "text", "json", "journal", NULL};

static struct cv_datagram journal = {.fd = -1};
static uint64_t lost;     /* lines, since the last cv_logging_tell_lost() */
static uint64_t lost_all; /* since the start */

/* Lines that a busy journal does not take are counted: waiting for it would stop the daemon. */
static bool send_line(const char *bytes, size_t n) {
  enum cv_err err = cv_datagram_send(&journal, bytes, n);
  lost += err == CV_ERR_LIMIT;
  lost_all += err == CV_ERR_LIMIT;
  return err != CV_ERR_CLOSED;
}

/* JOURNAL_STREAM is "DEVICE:INODE" of the stream that systemd has connected, which may have been redirected since. */
static bool stderr_is_journal(void) {
  const char *stream = getenv("JOURNAL_STREAM");
  struct stat found;
  char own[64];
  if (stream == NULL || fstat(STDERR_FILENO, &found) != 0) {
    return false;
  }
  (void)snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)found.st_dev, (uintmax_t)found.st_ino);
  return strcmp(stream, own) == 0;
}

enum cv_err cv_logging_begin(const struct cv_logging_settings *settings, const char *program, struct cv_why *why) {
  bool is_journal = settings->form == CV_LOGGING_JOURNAL;
  bool wants_journal = is_journal || (settings->form == CV_LOGGING_AUTO && stderr_is_journal());
  (void)unsetenv("JOURNAL_STREAM");
  cv_log_init(program, (enum cv_log_level)settings->level);
  if (settings->form == CV_LOGGING_JSON) {
    cv_log_json();
  }
  if (wants_journal && journal.fd < 0) {
    enum cv_err err = cv_datagram_open(JOURNAL, &journal, why);
    if (err != CV_OK && is_journal) {
      cv_why_prefix(why, "log is journal, but there is none");
      return CV_ERR_IO;
    }
  }
  if (journal.fd >= 0) {
    cv_log_journal(send_line);
  }
  return CV_OK;
}

uint64_t cv_logging_lost(void) {
  return lost_all + cv_log_unwritten();
}

void cv_logging_tell_lost(void) {
  uint64_t n = lost;
  if (n > 0) {
    lost = 0;
    cv_log(CV_LOG_WARN, "%" PRIu64 " lines of the log were lost: the journal did not take them in time", n);
    lost = lost == 0 ? 0 : n; /* this one was lost, too: it counts for nothing */
  }
}
