/* SPDX-License-Identifier: Apache-2.0 */
/* The co-broker's store, in memory: it takes batches and fills a core from them. */
#ifndef CV_FUZZ_COBROKER_DISK_H
#define CV_FUZZ_COBROKER_DISK_H

#include "cobroker/core.h"

struct disk_row {
  enum cv_cobroker_row kind;
  uint32_t campaign;
  uint64_t number, made; /* `made`: the commit that wrote it */
  struct cv_buf bytes;
};

struct disk {
  struct disk_row *row; /* by campaign, kind, number */
  size_t rows, cap;
  uint64_t commit; /* the latest one */
  struct cv_totals totals;
};

void disk_fini(struct disk *disk);
/* Does what the store's statements do; aborts on a batch that violates one of their keys, or is out of order. */
void disk_commit(struct disk *disk, const struct cv_cobroker_batch *batch);
/* Rows come in the order of the store. */
CV_MUST_USE enum cv_err disk_load(const struct disk *disk, struct cv_cobroker *core, uint64_t now_ms, uint64_t wall_ms);

#endif
