/* SPDX-License-Identifier: Apache-2.0 */
/* The third-party's store, in memory: it takes batches and fills a core from them. */
#ifndef CV_FUZZ_THIRDPARTY_DISK_H
#define CV_FUZZ_THIRDPARTY_DISK_H

#include "thirdparty/core.h"

struct shelf {
  struct shelf *next;
  struct cv_thirdparty_campaign_key key;
  struct cv_spec spec;
  struct cv_digest spec_digest;
  uint64_t seed;
  struct cv_thirdparty_campaign_row row;
  struct cv_delta kept; /* all its releases, plans and decisions, and its state */
  struct cv_standing *standing;
};

struct disk {
  struct shelf *first;
};

void disk_fini(struct disk *disk);
/* Aborts if the batch does not follow the one before it. */
void disk_apply(struct disk *disk, const struct cv_thirdparty_batch *batch);
/* Aborts if the third-party refuses it. */
void disk_load(const struct disk *disk, struct cv_thirdparty *thirdparty);
/* Runs the policy again: true if it makes the stored decisions, plans and standings. */
bool disk_replays(const struct shelf *shelf);

#endif
