/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/log.h"

#include <stdio.h>
#include <time.h>

#include "common/base/text.h"

static const char *program_name = "crowdveil";
static enum cv_log_level most = CV_LOG_INFO;
static size_t (*encode)(const struct cv_log_line *line, char *to) = cv_log_line_text;
static uint64_t unwritten;                                   /* lines that standard error did not take */
static bool (*send_to_journal)(const char *bytes, size_t n); /* NULL: standard error */

void cv_log_init(const char *program, enum cv_log_level level) {
  program_name = program;
  most = level;
}

void cv_log_json(void) {
  encode = cv_log_line_json;
}

void cv_log_journal(bool (*send)(const char *bytes, size_t n)) {
  send_to_journal = send;
}

uint64_t cv_log_unwritten(void) {
  return unwritten;
}

enum cv_log_level cv_log_level(void) {
  return most;
}

void cv_log_set_level(enum cv_log_level level, const char *by) {
  enum cv_log_level before = most;
  most = level;
  cv_log(level, "log level: %s, was %s (%s)", CV_LOG_LEVEL_WORDS[level], CV_LOG_LEVEL_WORDS[before], by);
}

static void stamp(char *to, size_t size) {
  struct timespec now;
  struct tm utc;
  char seconds[32];
  (void)clock_gettime(CLOCK_REALTIME, &now);
  (void)gmtime_r(&now.tv_sec, &utc);
  (void)strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &utc);
  (void)snprintf(to, size, "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
}

void cv_log_note(const struct cv_note *note) {
  char bytes[CV_LOG_LINE_BYTES], time[48];
  if (note->level > most) {
    return;
  }
  stamp(time, sizeof(time));
  const struct cv_log_line line = {.time = time, .program = program_name, .note = *note};
  if (send_to_journal == NULL || !send_to_journal(bytes, cv_log_line_journal(&line, bytes))) {
    size_t n = encode(&line, bytes);
    unwritten += fwrite(bytes, 1, n, stderr) != n;
  }
}

void cv_log(enum cv_log_level level, const char *fmt, ...) {
  char text[CV_LOG_TEXT_BYTES];
  if (level > most) {
    return;
  }
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  cv_log_note(&(struct cv_note){.level = level, .text = text});
}

void cv_log_early(const char *program, enum cv_log_level level, const char *fmt, ...) {
  char text[CV_LOG_TEXT_BYTES];
  va_list args;
  va_start(args, fmt);
  cv_text_vprint(text, sizeof(text), fmt, args);
  va_end(args);
  if (encode == cv_log_line_text && send_to_journal == NULL) {
    (void)fprintf(stderr, "%s: %s\n", program, text);
  } else {
    cv_log(level, "%s", text);
  }
}

void cv_log_peer(struct cv_log_limit *limit, const struct cv_note *note, uint64_t now_ms) {
  /* A line that is not written takes no other line's place. */
  if (note->level <= most && cv_log_limit_allows(limit, note->peer, note->text, now_ms)) {
    cv_log_note(note);
  }
}

void cv_log_suppressed(struct cv_log_limit *limit, uint64_t now_ms, bool early) {
  struct cv_log_limit_sum sum;
  while (cv_log_limit_next(limit, now_ms, early, &sum)) {
    const char *peer = sum.peer[0] == '\0' ? NULL : sum.peer;
    cv_log_note(&(struct cv_note){.level = CV_LOG_INFO, .text = sum.text, .peer = peer});
  }
}
