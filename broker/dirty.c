/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/dirty.h"

#include "broker/both/kinds.h"
#include "broker/campaign.h"
#include "broker/state.h"
#include "common/base/array.h"

static void push_dirty(struct cv_broker *broker, uint32_t campaign, enum cv_kind kind, uint64_t number) {
  if (CV_ARRAY_RING_ROOM(broker->dirty, broker->dirty_head, broker->dirty_count, broker->dirty_cap) != CV_OK) {
    broker->failed = true;
    return;
  }
  /* Commits only grow, so the ring is sorted by `since`: its head bounds which journal rows are still needed. */
  broker->dirty[(broker->dirty_head + broker->dirty_count++) % broker->dirty_cap] =
      (struct cv_dirty){.campaign = campaign, .kind = kind, .number = number, .since = broker->commit};
}

void cv_dirty_chunk(struct cv_broker *broker, uint32_t campaign, enum cv_kind kind, struct cv_chunk *chunk) {
  if (chunk->dirty_since == 0) {
    push_dirty(broker, campaign, kind, chunk->number);
    chunk->dirty_since = broker->commit;
  }
}

void cv_dirty_arm(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint32_t arm) {
  struct cv_arm *changed = &campaign->arm[arm];
  changed->changed = true;
  cv_broker_campaign_list(campaign, arm);
  if (changed->dirty_since == 0) {
    push_dirty(broker, campaign->id, CV_CHUNK_ARM, arm);
    changed->dirty_since = broker->commit;
  }
}

struct cv_dirty cv_dirty_pop(struct cv_broker *broker) {
  struct cv_dirty dirty = broker->dirty[broker->dirty_head];
  broker->dirty_head = (broker->dirty_head + 1) % broker->dirty_cap;
  broker->dirty_count--;
  return dirty;
}
