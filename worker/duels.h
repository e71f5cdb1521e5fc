/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader for a data file of comparisons, in the format of records.h: each row names an item, the one that it was
 * compared with, and a score: 1 if the item won, 0 if it lost, in between for a tie or an uncertain answer. A row says
 * as much of the other item, with 1 minus the score.
 */
#ifndef CV_WORKER_DUELS_H
#define CV_WORKER_DUELS_H

#include <stdint.h>

#include "common/base/err.h"
#include "worker/data.h"
#include "worker/quality/pairs.h"

struct cv_duels_ask {
  const char *path;
  const char *item_column, *versus_column, *score_column;
  char delimiter;
  double low, high; /* the scores of a loss and of a win; low < high */
  uint64_t memory;  /* of struct cv_items_csv */
};

struct cv_duels {
  uint32_t items;
  const char **name;          /* item i is arm i, in the order of data.h; owned, see names.h */
  struct cv_pairs pairs;      /* the mean score of each pair; owned */
  struct cv_data_notes notes; /* of data.h */
};

/*
 * Reads the file; the caller frees *ret with cv_duels_fini(). Errors are one line with file and line. CV_ERR_INVALID
 * also if two items never met: it is not known then who would win. CV_ERR_LIMIT for more than CV_PAIRS_ARMS_MAX items.
 */
CV_MUST_USE enum cv_err cv_duels_read(const struct cv_duels_ask *ask, struct cv_duels *ret, struct cv_why *why);
void cv_duels_fini(struct cv_duels *duels);

#endif
