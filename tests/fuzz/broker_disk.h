/* SPDX-License-Identifier: Apache-2.0 */
/* The broker's store, in memory: it takes batches and fills a core from them. */
#ifndef CV_FUZZ_BROKER_DISK_H
#define CV_FUZZ_BROKER_DISK_H

#include "broker/core.h"

struct disk_row {
  struct cv_op op; /* its key; `at` and `n` are not used */
  uint64_t made;   /* commit that wrote it */
  struct cv_buf bytes;
};

struct disk {
  struct disk_row *row;
  size_t rows, cap;
  uint64_t commit; /* the latest one */
};

void disk_fini(struct disk *disk);
/* Does what the store's statements do; aborts on a batch that violates one of their keys, or is out of order. */
void disk_commit(struct disk *disk, const struct cv_broker_batch *batch);
/* Loads one ended campaign, which the core waits for. */
CV_MUST_USE enum cv_err disk_fetch(const struct disk *disk, struct cv_broker *broker, uint32_t campaign);
/* Rows come in the order of the store. */
CV_MUST_USE enum cv_err disk_load(const struct disk *disk, struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms);

#endif
