/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of the log in its three formats, read back as a reader of that format would: exactly the fields that were
 * given, and clean text. The input is a byte of flags, then peer, reason and text, each ended by a zero byte.
 */
#include "common/base/log_line.h"

#include "tests/fuzz/fuzz.h"

#define TIME "2026-01-02T03:04:05.678Z"
enum { PEER = 1, CAMPAIGN = 2, REASON = 4 };

static void skip(const char **at, const char *expected) {
  size_t n = strlen(expected);
  CV_REQUIRE(strncmp(*at, expected, n) == 0);
  *at += n;
}

/* ---- JSON ---- */

static void skip_string(const char **at) {
  skip(at, "\"");
  while (**at != '"') {
    CV_REQUIRE(**at != '\0');
    bool is_escape = **at == '\\';
    CV_REQUIRE(!is_escape || (*at)[1] == '"' || (*at)[1] == '\\');
    *at += is_escape ? 2 : 1;
  }
  (*at)++;
}

static void check_json(const struct cv_log_line *line) {
  char bytes[CV_LOG_LINE_BYTES + 1];
  size_t n = cv_log_line_json(line, bytes);
  CV_REQUIRE(n > 0 && bytes[n - 1] == '\n' && cv_text_is_clean(bytes, n - 1));
  bytes[n] = '\0';
  const char *at = bytes;
  skip(&at, "{\"time\":\"" TIME "\",\"level\":\"info\",\"program\":\"fuzz\",\"message\":");
  skip_string(&at);
  if (line->note.peer != NULL) {
    skip(&at, ",\"peer\":");
    skip_string(&at);
  }
  if (line->note.campaign != 0) {
    skip(&at, ",\"campaign\":42");
  }
  if (line->note.reason != NULL) {
    skip(&at, ",\"reason\":");
    skip_string(&at);
  }
  skip(&at, "}\n");
  CV_REQUIRE(at == bytes + n);
}

/* ---- the journal, read as systemd does: NAME=VALUE, or NAME, a 64-bit length and that many bytes ---- */

static void take_field(struct cv_reader *in, const char *name, const char *value) {
  const uint8_t *read = cv_read(in, strlen(name));
  CV_REQUIRE(read != NULL && memcmp(read, name, strlen(name)) == 0);
  uint8_t between = cv_read_u8(in);
  if (between == '=') {
    CV_REQUIRE(value != NULL);
    read = cv_read(in, strlen(value));
    CV_REQUIRE(read != NULL && memcmp(read, value, strlen(value)) == 0);
  } else {
    size_t n = cv_read_u64(in);
    CV_REQUIRE(between == '\n' && n <= CV_LOG_TEXT_BYTES);
    read = cv_read(in, n);
    CV_REQUIRE(read != NULL && cv_text_is_clean((const char *)read, n));
  }
  CV_REQUIRE(cv_read_u8(in) == '\n');
}

static void check_journal(const struct cv_log_line *line) {
  char bytes[CV_LOG_LINE_BYTES];
  struct cv_reader in = cv_reader_over(bytes, cv_log_line_journal(line, bytes));
  take_field(&in, "MESSAGE", NULL);
  take_field(&in, "PRIORITY", "6");
  take_field(&in, "SYSLOG_IDENTIFIER", NULL);
  if (line->note.peer != NULL) {
    take_field(&in, "CROWDVEIL_PEER", NULL);
  }
  if (line->note.campaign != 0) {
    take_field(&in, "CROWDVEIL_CAMPAIGN", "42");
  }
  if (line->note.reason != NULL) {
    take_field(&in, "CROWDVEIL_REASON", NULL);
  }
  CV_REQUIRE(cv_reader_done(&in));
}

static void check_text(const struct cv_log_line *line) {
  char bytes[CV_LOG_LINE_BYTES];
  size_t n = cv_log_line_text(line, bytes);
  CV_REQUIRE(n > 0 && bytes[n - 1] == '\n' && cv_text_is_clean(bytes, n - 1));
}

/* The next text of the input; the last one ends with the input. */
static const char *next(const char **at, const char *end) {
  const char *text = *at;
  size_t n = strlen(text);
  *at += n < (size_t)(end - text) ? n + 1 : n;
  return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  if (n == 0) {
    return 0;
  }
  char *texts = fuzz_text(bytes + 1, n - 1);
  const char *at = texts, *end = texts + n - 1;
  const char *peer = next(&at, end), *reason = next(&at, end), *text = next(&at, end);
  const struct cv_log_line line = {.time = TIME,
                                   .program = "fuzz",
                                   .note = {.level = CV_LOG_INFO,
                                            .text = text,
                                            .peer = (bytes[0] & PEER) != 0 ? peer : NULL,
                                            .campaign = (bytes[0] & CAMPAIGN) != 0 ? 42 : 0,
                                            .reason = (bytes[0] & REASON) != 0 ? reason : NULL}};
  check_text(&line);
  check_json(&line);
  check_journal(&line);
  free(texts);
  return 0;
}
