/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a comma or tab separated file with a header. */
#include <stdlib.h>

#include "common/base/text.h"
#include "worker/feed.h"
#include "worker/records.h"

struct reader {
  struct cv_records records;
  uint32_t columns, item_at, score_at, worker_at;
};

static enum cv_err read_header(struct cv_feed *feed, struct reader *reader, struct cv_why *why) {
  const struct cv_items_csv *ask = feed->ask;
  struct cv_records *records = &reader->records;
  bool end;
  CV_TRY(cv_records_next(records, &end, why));
  if (end) {
    return cv_fail(why, CV_ERR_INVALID, "%s:1: the file is empty; expected a header line with columns %s and %s",
                   ask->file, ask->item_column, ask->score_column);
  }
  reader->columns = records->fields;
  CV_TRY(cv_records_column(records, ask->item_column, &reader->item_at, why));
  if (ask->worker_column[0] != '\0') {
    CV_TRY(cv_records_column(records, ask->worker_column, &reader->worker_at, why));
  }
  CV_TRY(cv_records_column(records, ask->score_column, &reader->score_at, why));
  for (uint32_t i = 0; i < reader->columns; i++) {
    if (!cv_feed_wants(ask, cv_records_field(records, i))) {
      cv_feed_leave(feed, cv_records_field(records, i));
    }
  }
  return CV_OK;
}

static enum cv_err open_csv(struct cv_feed *feed, struct cv_why *why) {
  struct reader *reader = calloc(1, sizeof(*reader));
  if (reader == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", feed->ask->file);
  }
  feed->reader = reader;
  CV_TRY(cv_records_open(feed->ask->file, feed->ask->delimiter, &reader->records, why));
  return read_header(feed, reader, why);
}

static enum cv_err next_csv(struct cv_feed *feed, struct cv_feed_row *ret, bool *ret_end, struct cv_why *why) {
  struct reader *reader = feed->reader;
  CV_TRY(cv_records_row(&reader->records, reader->columns, ret_end, why));
  if (!*ret_end) {
    feed->at = reader->records.start;
    ret->item = cv_text_of_csv(cv_records_field(&reader->records, reader->item_at));
    ret->text = cv_records_field(&reader->records, reader->score_at);
    ret->worker = feed->ask->worker_column[0] == '\0'
                      ? NULL
                      : cv_text_of_csv(cv_records_field(&reader->records, reader->worker_at));
  }
  return CV_OK;
}

static void close_csv(void *data) {
  struct reader *reader = data;
  cv_records_close(&reader->records);
  free(reader);
}

const struct cv_feed_class cv_feed_csv = {.open = open_csv, .next = next_csv, .close = close_csv};
