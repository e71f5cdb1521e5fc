/* SPDX-License-Identifier: Apache-2.0 */
/* What differs from what is stored, in the order of the first change: a ring of chunks and arms. */
#include <stdlib.h>

#include "broker/state.h"

static void push_dirty(struct cv_broker *broker, uint32_t campaign, enum cv_chunk_kind kind, uint64_t number) {
  if (broker->dirty_count == broker->dirty_cap) {
    size_t cap = broker->dirty_cap == 0 ? 256 : broker->dirty_cap * 2;
    struct cv_dirty *grown = malloc(cap * sizeof(*grown));
    if (grown == NULL) {
      broker->failed = true;
      return;
    }
    for (size_t i = 0; i < broker->dirty_count; i++) {
      grown[i] = broker->dirty[(broker->dirty_head + i) % broker->dirty_cap];
    }
    free(broker->dirty);
    broker->dirty = grown;
    broker->dirty_cap = cap;
    broker->dirty_head = 0;
  }
  broker->dirty[(broker->dirty_head + broker->dirty_count++) % broker->dirty_cap] =
      (struct cv_dirty){.campaign = campaign, .kind = kind, .number = number, .since = broker->commit};
}

void cv_dirty_chunk(struct cv_broker *broker, uint32_t campaign, enum cv_chunk_kind kind, struct cv_chunk *chunk) {
  if (chunk->dirty_since == 0) {
    push_dirty(broker, campaign, kind, chunk->number);
    chunk->dirty_since = broker->commit;
  }
}

void cv_dirty_arm(struct cv_broker *broker, struct cv_campaign *campaign, uint32_t index) {
  struct cv_arm *arm = &campaign->arm[index];
  arm->changed = true;
  if (arm->dirty_since == 0) {
    push_dirty(broker, campaign->id, CV_CHUNK_ARM, index);
    arm->dirty_since = broker->commit;
  }
}

struct cv_dirty cv_dirty_pop(struct cv_broker *broker) {
  struct cv_dirty dirty = broker->dirty[broker->dirty_head];
  broker->dirty_head = (broker->dirty_head + 1) % broker->dirty_cap;
  broker->dirty_count--;
  return dirty;
}
