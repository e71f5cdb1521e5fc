/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a file of JSON Lines: one object a line, in UTF-8, whose keys are the columns. Item and worker are texts or
 * whole numbers, the score is a number, a text, or null. Blank lines are skipped; a line has at most
 * CV_FEED_LINE_BYTES bytes. The file is unpacked if its name ends in .gz or .zst.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/table.h"
#include "common/base/text.h"
#include "worker/bytes.h"
#include "worker/feed.h"
#include "worker/starved.h"

/* Objects of a wrong file could have a new key in every line: later ones are not named. */
enum { KEYS_MAX = 64, NUMBER_BYTES = 24 };

/* A key that is not asked for. */
struct key {
  UT_hash_handle hh;
  char name[]; /* as long as it is */
};

struct reader {
  struct cv_bytes bytes;
  uint64_t line; /* of the next line, from 1 */
  char *text;    /* the current line */
  size_t used, cap;
  json_t *object; /* of the current line */
  struct key *keys;
  char item[NUMBER_BYTES], worker[NUMBER_BYTES]; /* numbers as text */
};

static enum cv_err no_memory(const struct cv_feed *feed, struct cv_why *why) {
  return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", feed->ask->file);
}

static enum cv_err fail(const struct cv_feed *feed, struct cv_why *why, const char *text) {
  return cv_fail(why, CV_ERR_INVALID, "%s: %s", cv_feed_place(feed->ask, feed->at).text, text);
}

/* ---- lines ---- */

/* Reads a line without its end; *ret_end if there is none. */
static enum cv_err read_line(struct cv_feed *feed, bool *ret_end, struct cv_why *why) {
  struct reader *reader = feed->reader;
  int c = cv_bytes_get(&reader->bytes);
  *ret_end = c == EOF;
  feed->at = reader->line++;
  for (reader->used = 0; c != EOF && c != '\n'; c = cv_bytes_get(&reader->bytes)) {
    if (reader->used == CV_FEED_LINE_BYTES) {
      return cv_fail(why, CV_ERR_LIMIT, "%s: the line is longer than %d bytes", cv_feed_place(feed->ask, feed->at).text,
                     CV_FEED_LINE_BYTES);
    }
    if (reader->used == reader->cap && CV_ARRAY_ROOM(reader->text, reader->used + 1, reader->cap) != CV_OK) {
      return no_memory(feed, why);
    }
    reader->text[reader->used++] = (char)c;
  }
  return cv_bytes_check(&reader->bytes, why);
}

static bool is_blank(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r') {
      return false;
    }
  }
  return true;
}

static enum cv_err next_line(struct cv_feed *feed, bool *ret_end, struct cv_why *why) {
  const struct reader *reader = feed->reader;
  do {
    CV_TRY(read_line(feed, ret_end, why));
  } while (!*ret_end && is_blank(reader->text, reader->used));
  return CV_OK;
}

/* ---- objects ---- */

static enum cv_err parse(struct cv_feed *feed, struct cv_why *why) {
  struct reader *reader = feed->reader;
  json_error_t error;
  json_decref(reader->object);
  cv_starved_watch();
  reader->object = json_loadb(reader->text, reader->used, JSON_REJECT_DUPLICATES, &error);
  if (cv_starved_failed()) {
    return no_memory(feed, why);
  }
  if (reader->object == NULL) {
    return cv_fail(why, CV_ERR_INVALID, "%s: not JSON, %s; expected one object a line",
                   cv_feed_place(feed->ask, feed->at).text, error.text);
  }
  return json_is_object(reader->object) ? CV_OK : fail(feed, why, "not a JSON object; expected one object a line");
}

static enum cv_err note_keys(struct cv_feed *feed, struct cv_why *why) {
  struct reader *reader = feed->reader;
  const char *name;
  json_t *value;
  json_object_foreach(reader->object, name, value) {
    struct key *key = NULL;
    size_t n = strlen(name);
    if (cv_feed_wants(feed->ask, name) || HASH_COUNT(reader->keys) == KEYS_MAX) {
      continue;
    }
    HASH_FIND_STR(reader->keys, name, key);
    if (key != NULL) {
      continue;
    }
    key = calloc(1, sizeof(*key) + n + 1);
    if (key == NULL) {
      return no_memory(feed, why);
    }
    memcpy(key->name, name, n);
    if (CV_TABLE_ADD_TEXT(reader->keys, name, key) != CV_OK) {
      free(key);
      return no_memory(feed, why);
    }
    cv_feed_leave(feed, name);
  }
  return CV_OK;
}

/* A text, or a whole number as it is written. */
static enum cv_err take_name(const struct cv_feed *feed, const char *key, char *number, const char **ret,
                             struct cv_why *why) {
  const struct reader *reader = feed->reader;
  const json_t *value = json_object_get(reader->object, key);
  if (json_is_integer(value)) {
    (void)snprintf(number, NUMBER_BYTES, "%lld", (long long)json_integer_value(value));
    *ret = number;
    return CV_OK;
  }
  if (!json_is_string(value)) {
    return cv_fail(why, CV_ERR_INVALID, "%s: %s \"%s\"; expected a text or a whole number",
                   cv_feed_place(feed->ask, feed->at).text, value == NULL ? "no key" : "another kind of value for",
                   cv_text_piece(key).text);
  }
  *ret = json_string_value(value);
  return CV_OK;
}

static enum cv_err take_score(const struct cv_feed *feed, struct cv_feed_row *ret, struct cv_why *why) {
  const struct reader *reader = feed->reader;
  const json_t *value = json_object_get(reader->object, feed->ask->score_column);
  ret->text = NULL;
  if (json_is_number(value)) {
    ret->number = json_number_value(value);
  } else if (value == NULL || json_is_null(value)) {
    ret->text = value == NULL ? "" : "null";
  } else if (json_is_string(value)) {
    ret->text = json_string_value(value);
  } else {
    return cv_fail(why, CV_ERR_INVALID, "%s: another kind of value for \"%s\"; expected a number",
                   cv_feed_place(feed->ask, feed->at).text, cv_text_piece(feed->ask->score_column).text);
  }
  return CV_OK;
}

static enum cv_err next_jsonl(struct cv_feed *feed, struct cv_feed_row *ret, bool *ret_end, struct cv_why *why) {
  struct reader *reader = feed->reader;
  CV_TRY(next_line(feed, ret_end, why));
  if (*ret_end) {
    return CV_OK;
  }
  CV_TRY(parse(feed, why));
  CV_TRY(note_keys(feed, why));
  CV_TRY(take_name(feed, feed->ask->item_column, reader->item, &ret->item, why));
  ret->worker = NULL;
  if (feed->ask->worker_column[0] != '\0') {
    CV_TRY(take_name(feed, feed->ask->worker_column, reader->worker, &ret->worker, why));
  }
  return take_score(feed, ret, why);
}

static enum cv_err open_jsonl(struct cv_feed *feed, struct cv_why *why) {
  struct reader *reader = calloc(1, sizeof(*reader));
  if (reader == NULL) {
    return no_memory(feed, why);
  }
  feed->reader = reader;
  reader->line = 1;
  return cv_bytes_open(feed->ask->file, cv_bytes_packing(feed->ask->file), CV_BYTES_MAX, &reader->bytes, why);
}

static void close_jsonl(void *data) {
  struct reader *reader = data;
  CV_TABLE_DRAIN(reader->keys, free);
  json_decref(reader->object);
  cv_bytes_close(&reader->bytes);
  free(reader->text);
  free(reader);
}

const struct cv_feed_class cv_feed_jsonl = {.open = open_jsonl, .next = next_jsonl, .close = close_jsonl};
