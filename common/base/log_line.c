/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/log_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

const char *const CV_LOG_LEVEL_WORDS[] = {"error", "warn", "info", "debug", NULL};

enum cv_log_level cv_log_level_of(const char *word) {
  enum cv_log_level level = CV_LOG_ERROR;
  while (level < CV_LOG_LEVELS && strcmp(CV_LOG_LEVEL_WORDS[level], word) != 0) {
    level++;
  }
  return level;
}

/* The cleaned message. Encoded, each of its bytes becomes two at most, so every line fits. */
struct message {
  char text[CV_LOG_TEXT_BYTES];
};
_Static_assert(CV_LOG_LINE_BYTES >= 2 * CV_LOG_TEXT_BYTES + 1024, "a line may not fit");

struct out {
  char *to;
  size_t used;
};

static void put(struct out *out, const char *bytes, size_t n) {
  CV_REQUIRE(n <= CV_LOG_LINE_BYTES - out->used);
  memcpy(out->to + out->used, bytes, n);
  out->used += n;
}

static void print(struct out *out, const char *fmt, ...) CV_PRINTF(2, 3);
static void print(struct out *out, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(out->to + out->used, CV_LOG_LINE_BYTES - out->used, fmt, args);
  va_end(args);
  CV_REQUIRE(n >= 0 && (size_t)n < CV_LOG_LINE_BYTES - out->used);
  out->used += (size_t)n;
}

/* Marks of direction (U+200E, U+200F) belong into the isolate of a name; elsewhere they are replaced, too. */
static void clean(char *text) {
  bool is_inside = false;
  cv_text_clean(text, strlen(text));
  for (char *at = text; (at = strchr(at, '\xe2')) != NULL; at++) {
    bool is_mark = strncmp(at, "\xe2\x80\x8e", 3) == 0 || strncmp(at, "\xe2\x80\x8f", 3) == 0;
    is_inside = strncmp(at, CV_TEXT_ISOLATE, 3) == 0 || (is_inside && strncmp(at, CV_TEXT_ISOLATE_END, 3) != 0);
    if (is_mark && !is_inside) {
      memset(at, '?', 3);
    }
  }
}

static struct message message_of(const struct cv_note *note) {
  struct message message;
  (void)snprintf(message.text, sizeof(message.text), "%s%s%s", note->peer == NULL ? "" : note->peer,
                 note->peer == NULL ? "" : ": ", note->text);
  clean(message.text);
  return message;
}

/* A program's or a peer's name, cut if it is longer than any that we use. */
struct name {
  char text[128];
};

static struct name name_of(const char *text) {
  struct name name;
  (void)snprintf(name.text, sizeof(name.text), "%s", text);
  clean(name.text);
  return name;
}

size_t cv_log_line_text(const struct cv_log_line *line, char *to) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  struct out out = {.to = to};
  print(&out, "%s %s %s: %s\n", line->time, name_of(line->program).text, names[line->note.level],
        message_of(&line->note).text);
  return out.used;
}

/* ---- JSON ---- */

static void put_string(struct out *out, const char *name, const char *text) {
  print(out, "\"%s\":\"", name);
  /* Clean text needs no other escapes. */
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\') {
      put(out, "\\", 1);
    }
    put(out, text, 1);
  }
  put(out, "\"", 1);
}

size_t cv_log_line_json(const struct cv_log_line *line, char *to) {
  struct out out = {.to = to};
  const struct cv_note *note = &line->note;
  print(&out, "{\"time\":\"%s\",\"level\":\"%s\",", line->time, CV_LOG_LEVEL_WORDS[note->level]);
  put_string(&out, "program", name_of(line->program).text);
  put(&out, ",", 1);
  put_string(&out, "message", message_of(note).text);
  if (note->peer != NULL) {
    put(&out, ",", 1);
    put_string(&out, "peer", name_of(note->peer).text);
  }
  if (note->campaign != 0) {
    print(&out, ",\"campaign\":%" PRIu64, note->campaign);
  }
  if (note->reason != NULL) {
    put(&out, ",", 1);
    put_string(&out, "reason", name_of(note->reason).text);
  }
  put(&out, "}\n", 2);
  return out.used;
}

/* ---- the journal ---- */

/* With its length, so that no text can end the field. */
static void put_field(struct out *out, const char *name, const char *text) {
  size_t n = strlen(text);
  print(out, "%s\n", name);
  for (unsigned shift = 0; shift < 64; shift += 8) {
    const char byte = (char)((uint64_t)n >> shift & 0xff);
    put(out, &byte, 1);
  }
  put(out, text, n);
  put(out, "\n", 1);
}

size_t cv_log_line_journal(const struct cv_log_line *line, char *to) {
  static const char priorities[] = "3467"; /* of syslog */
  struct out out = {.to = to};
  const struct cv_note *note = &line->note;
  put_field(&out, "MESSAGE", message_of(note).text);
  print(&out, "PRIORITY=%c\n", priorities[note->level]);
  put_field(&out, "SYSLOG_IDENTIFIER", name_of(line->program).text);
  if (note->peer != NULL) {
    put_field(&out, "CROWDVEIL_PEER", name_of(note->peer).text);
  }
  if (note->campaign != 0) {
    print(&out, "CROWDVEIL_CAMPAIGN=%" PRIu64 "\n", note->campaign);
  }
  if (note->reason != NULL) {
    put_field(&out, "CROWDVEIL_REASON", name_of(note->reason).text);
  }
  return out.used;
}
