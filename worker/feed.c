/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/feed.h"

#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

enum cv_err cv_feed_open(const struct cv_items_csv *ask, struct cv_feed *ret, struct cv_why *why) {
  static const struct cv_feed_class *const classes[] = {
      [CV_FORMAT_CSV] = &cv_feed_csv, [CV_FORMAT_JSONL] = &cv_feed_jsonl, [CV_FORMAT_SQLITE] = &cv_feed_sqlite};
  struct cv_feed feed = {.class = classes[ask->format], .ask = ask};
  enum cv_err err = feed.class->open(&feed, why);
  if (err != CV_OK) {
    cv_feed_close(&feed);
    return err;
  }
  *ret = feed;
  return CV_OK;
}

enum cv_err cv_feed_next(struct cv_feed *feed, struct cv_feed_row *ret, bool *ret_end, struct cv_why *why) {
  return feed->class->next(feed, ret, ret_end, why);
}

void cv_feed_close(struct cv_feed *feed) {
  if (feed->reader != NULL) {
    feed->class->close(feed->reader);
  }
  *feed = (struct cv_feed){0};
}

struct cv_feed_place cv_feed_place(const struct cv_items_csv *ask, uint64_t at) {
  struct cv_feed_place place;
  cv_text_print(place.text, sizeof(place.text), ask->format == CV_FORMAT_SQLITE ? "%s: row %llu" : "%s:%llu", ask->file,
                (unsigned long long)at);
  return place;
}

bool cv_feed_wants(const struct cv_items_csv *ask, const char *column) {
  return strcmp(column, ask->item_column) == 0 || strcmp(column, ask->score_column) == 0 ||
         (ask->worker_column[0] != '\0' && strcmp(column, ask->worker_column) == 0);
}

void cv_feed_leave(struct cv_feed *feed, const char *column) {
  static const char more[] = " ...";
  size_t used = strlen(feed->unused_names), size = sizeof(feed->unused_names) - strlen(more);
  struct cv_text_piece piece = cv_text_piece(column[0] == '\0' ? "\"\"" : column);
  bool is_first = feed->unused++ == 0;
  if (used >= strlen(more) && strcmp(feed->unused_names + used - strlen(more), more) == 0) {
    return;
  }
  if (used + strlen(piece.text) + 2 < size) {
    (void)snprintf(feed->unused_names + used, size - used, "%s%s", is_first ? "" : ", ", piece.text);
  } else {
    memcpy(feed->unused_names + used, more, sizeof(more));
  }
}
