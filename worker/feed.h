/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a data file, one at a time, whatever its format: a comma or tab separated file (records.h), JSON Lines,
 * or a query of an SQLite database. All formats give the same row, so that one reader (data.h) has all rules about
 * items, scores and persons.
 */
#ifndef CV_WORKER_FEED_H
#define CV_WORKER_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/campaign/items.h"

/* Bounds of a row in every format. */
enum { CV_FEED_LINE_BYTES = 1 << 20, CV_FEED_UNUSED_BYTES = 160 };

/* The texts are borrowed until the next row; they may be any bytes without a zero. */
struct cv_feed_row {
  const char *item;   /* "" if the row has none */
  const char *worker; /* "" if the row has none; NULL: persons are not asked for */
  const char *text;   /* of the score, "" or "null" if the row has none; NULL: it is `number` */
  double number;
};

struct cv_feed {
  const struct cv_feed_class *class;
  const struct cv_items_csv *ask; /* borrowed */
  void *reader;                   /* of the class; owned */
  uint64_t at;                    /* of the current row: its line in the file, or its number in the query's result */
  uint32_t unused;                /* the number of columns that are neither item, score nor worker */
  char unused_names[CV_FEED_UNUSED_BYTES]; /* "date, weight", cut with " ..." if there are many */
};

/*
 * Opens the file and reads up to its first row. Borrows `ask` until cv_feed_close(). Errors are one line that begins
 * with the file and, where there is one, the line or row: CV_ERR_IO, CV_ERR_DAMAGED, CV_ERR_LIMIT, CV_ERR_NOMEM, and
 * CV_ERR_INVALID for what the file should not contain.
 */
CV_MUST_USE enum cv_err cv_feed_open(const struct cv_items_csv *ask, struct cv_feed *ret, struct cv_why *why);
/* The next row; *ret_end is true if there is no further one. */
CV_MUST_USE enum cv_err cv_feed_next(struct cv_feed *feed, struct cv_feed_row *ret, bool *ret_end, struct cv_why *why);
/* Safe on a zeroed struct. */
void cv_feed_close(struct cv_feed *feed);

/* The current row as the beginning of a message: "/data/r.csv:17", "/data/r.db: row 17". */
struct cv_feed_place {
  char text[400];
};
struct cv_feed_place cv_feed_place(const struct cv_items_csv *ask, uint64_t at);

/* ---- for the formats ---- */

struct cv_feed_class {
  /* Sets `reader`, and notes the unused columns as far as they are known. */
  enum cv_err (*open)(struct cv_feed *feed, struct cv_why *why);
  enum cv_err (*next)(struct cv_feed *feed, struct cv_feed_row *ret, bool *ret_end, struct cv_why *why);
  void (*close)(void *reader);
};
extern const struct cv_feed_class cv_feed_csv, cv_feed_jsonl, cv_feed_sqlite;

/* Whether the campaign asks for this column. */
bool cv_feed_wants(const struct cv_items_csv *ask, const char *column);
/* Notes a column that is not asked for. */
void cv_feed_leave(struct cv_feed *feed, const char *column);

#endif
