/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data file as scores: which items there are, which of their rows count, and the scale. The same file and the same
 * section `items` give every reader the same items, arms, persons and rows.
 */
#ifndef CV_WORKER_DATA_H
#define CV_WORKER_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/spec.h"
#include "common/campaign/items.h"
#include "worker/quality/persons.h"
#include "worker/quality/rows.h"

/* What a reader decided or left out and the campaign file does not say: lines for the requester alone, since they tell
 * of single rows. Each begins with the file's name. */
enum { CV_DATA_NOTES_MAX = 24 };
struct cv_data_notes {
  uint32_t count;
  struct cv_why note[CV_DATA_NOTES_MAX];
};

struct cv_data {
  uint32_t items;
  /* Item i is arm i. Sorted by number if every name in the file is a number, else by bytes, so that every reader
   * numbers the arms alike, in whatever order the rows come. */
  const char **name;         /* names.h; owned */
  struct cv_rows rows;       /* an arm's rows in the file's order; 4 bytes a row */
  struct cv_persons persons; /* with a worker column: another 8 bytes a row */
  struct cv_scale scale;     /* the declared one; else from the smallest score of the file to the largest */
  uint64_t print;            /* fingerprint of names, rows and persons in their order (print.h), not 0 */
  struct cv_data_notes notes;
};

/* Items that a file may have before `top` and `min_rows` leave some out. */
enum { CV_DATA_ITEMS_MAX = 1 << 20 };

/*
 * Reads the file; the caller frees *ret with cv_data_fini(). While reading, another 12 bytes a row, 16 with persons.
 *
 * Items with fewer than `least_rows` rows with a score, or none, are left out; of the others the `top` ones with most
 * rows stay, and among those with equally many the first ones in the order of arms. Rows whose names have the same
 * normal form (normal.h) are of one item or person. Persons are numbered in an order that looks random and depends on
 * nothing but how many there are, and those without a row that counts are left out.
 *
 * `needs_scale`: without a declared scale CV_ERR_INVALID with the range of the scores, which the owner of the file may
 * declare if it is the range of the question.
 *
 * The errors of cv_feed_open(); CV_ERR_LIMIT also for more than CV_ARMS_MAX items, CV_DATA_ITEMS_MAX items before the
 * choice, or CV_PERSONS_MAX persons.
 */
CV_MUST_USE enum cv_err cv_data_read(const struct cv_items_csv *ask, bool needs_scale, struct cv_data *ret,
                                     struct cv_why *why);
void cv_data_fini(struct cv_data *data);

#endif
