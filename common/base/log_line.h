/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of the log in each of its formats. Pure. Texts of peers are in many lines, so whatever a text contains, the
 * result has no line break, no field and no terminal escape beyond those written here: what is not clean text
 * (text.h), or changes the order or the lines of the text around it, is replaced by '?'.
 */
#ifndef CV_BASE_LOG_LINE_H
#define CV_BASE_LOG_LINE_H

#include <stddef.h>
#include <stdint.h>

enum cv_log_level { CV_LOG_ERROR, CV_LOG_WARN, CV_LOG_INFO, CV_LOG_DEBUG, CV_LOG_LEVELS };

/* "error", "warn", "info", "debug", NULL. */
extern const char *const CV_LOG_LEVEL_WORDS[];
/* The level of that word; CV_LOG_LEVELS if it is none. */
enum cv_log_level cv_log_level_of(const char *word);

enum { CV_LOG_TEXT_BYTES = 1024, CV_LOG_LINE_BYTES = 4096 };

/* An event: its text, and what the text is about as far as that is known. All texts are borrowed. */
struct cv_note {
  enum cv_log_level level;
  const char *text;   /* for a person; contains what the other fields say, but for the peer */
  const char *peer;   /* "gateway/1-9"; NULL: none. A line with a peer is rate limited (log_limit.h) */
  const char *reason; /* of a refusal: its name in the metrics (refusals.h); NULL: none */
  uint64_t campaign;  /* its number; 0: none */
};

struct cv_log_line {
  const char *time; /* RFC 3339, UTC, with milliseconds */
  const char *program;
  struct cv_note note;
};

/*
 * Each writes the line to `to`, which has room for CV_LOG_LINE_BYTES, and returns its length. A text beyond
 * CV_LOG_TEXT_BYTES is cut.
 *   text    TIME PROGRAM LEVEL: [PEER: ]TEXT, and a line break
 *   json    one object with time, level, program, message ([PEER: ]TEXT) and, where they exist, peer, campaign and
 *           reason; and a line break
 *   journal the fields MESSAGE, PRIORITY, SYSLOG_IDENTIFIER and, where they exist, CROWDVEIL_PEER, CROWDVEIL_CAMPAIGN
 *           and CROWDVEIL_REASON, in systemd's native protocol
 */
size_t cv_log_line_text(const struct cv_log_line *line, char *to);
size_t cv_log_line_json(const struct cv_log_line *line, char *to);
size_t cv_log_line_journal(const struct cv_log_line *line, char *to);

#endif
