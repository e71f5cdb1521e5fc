/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to data.c: the rows of a file as they were read, before it is known which items count and on which scale. */
#ifndef CV_WORKER_TALLY_H
#define CV_WORKER_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/spec.h"
#include "common/base/table.h"
#include "common/campaign/items.h"
#include "worker/budget.h"
#include "worker/feed.h"
#include "worker/quality/extent.h"
#include "worker/spelling.h"

enum { CV_TALLY_BLOCK = 1 << 14 };

struct cv_tally_item {
  bool is_number;
  double number;
  uint64_t rows; /* with a score */
  struct cv_spelling spelling;
  uint32_t index; /* in the order of the file, from 0 */
  uint32_t arm;   /* UINT32_MAX: left out; set by cv_tally_choose() */
  UT_hash_handle hh;
  char name[]; /* in its normal form; spelling.h */
};

struct cv_tally_person {
  uint32_t index; /* in the order of the file, from 0 */
  struct cv_spelling spelling;
  UT_hash_handle hh;
  char name[];
};

/* Rows with a score, in the order of the file. */
struct cv_tally_block {
  struct cv_tally_block *next;
  uint32_t rows;
  double score[CV_TALLY_BLOCK];
  uint32_t item[CV_TALLY_BLOCK];
  uint32_t person[]; /* CV_TALLY_BLOCK of them with a worker column, else none */
};

struct cv_tally {
  const struct cv_items_csv *ask;
  struct cv_tally_item *items; /* by name */
  struct cv_tally_person *persons;
  struct cv_tally_block *first, *last;
  struct cv_budget budget;         /* for items, persons and blocks */
  uint64_t rows;                   /* with a score */
  uint64_t skipped, first_skipped; /* rows without one, and where the first of them is */
  uint64_t clamped, first_clamped; /* rows outside the scale, and where the first of them is */
  struct cv_extent extent;         /* of all rows, also of items that are left out */
  uint32_t unused;                 /* columns that are not asked for */
  char unused_names[CV_FEED_UNUSED_BYTES];
  /* Of cv_tally_choose(): */
  uint32_t kept, bare; /* items that stay; items without any score */
  uint64_t kept_rows;
};

/* Reads all rows; the caller frees *ret with cv_tally_fini(). Borrows `ask`. The errors of data.h. */
CV_MUST_USE enum cv_err cv_tally_read(const struct cv_items_csv *ask, struct cv_tally *ret, struct cv_why *why);
/* Chooses the items that stay, and sorts `items`: those that stay come first, in the order of their arms. */
CV_MUST_USE enum cv_err cv_tally_choose(struct cv_tally *tally, struct cv_why *why);
/* Safe on a zeroed struct. */
void cv_tally_fini(struct cv_tally *tally);

#endif
