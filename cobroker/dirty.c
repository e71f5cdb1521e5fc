/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/dirty.h"

#include "cobroker/campaign.h"
#include "cobroker/state.h"
#include "common/base/array.h"
#include "common/base/chunks.h"

static void push(struct cv_cobroker *core, uint32_t campaign, enum cv_cobroker_row row, uint64_t number) {
  struct cv_cobroker_dirt *dirt = &core->dirt;
  if (CV_ARRAY_RING_ROOM(dirt->at, dirt->head, dirt->count, dirt->cap) != CV_OK) {
    core->failed = true;
    return;
  }
  /* Commits only grow, so the ring is sorted by `since`: its head bounds which journal rows are still needed. */
  dirt->at[(dirt->head + dirt->count++) % dirt->cap] =
      (struct cv_cobroker_dirty){.campaign = campaign, .row = row, .number = number, .since = core->commit};
}

void cv_cobroker_dirty_chunk(struct cv_cobroker *core, uint32_t campaign, enum cv_cobroker_row row,
                             struct cv_chunk *chunk) {
  if (chunk->dirty_since == 0) {
    push(core, campaign, row, chunk->number);
    chunk->dirty_since = core->commit;
  }
}

void cv_cobroker_dirty_arm(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, uint32_t arm) {
  struct cv_cobroker_arm *changed = &campaign->arm[arm];
  changed->changed = true;
  cv_cobroker_campaign_list(campaign, arm);
  if (changed->dirty_since == 0) {
    push(core, campaign->id, CV_COROW_ARM, arm);
    changed->dirty_since = core->commit;
  }
}

struct cv_cobroker_dirty cv_cobroker_dirty_pop(struct cv_cobroker *core) {
  struct cv_cobroker_dirt *dirt = &core->dirt;
  struct cv_cobroker_dirty dirty = dirt->at[dirt->head];
  dirt->head = (dirt->head + 1) % dirt->cap;
  dirt->count--;
  return dirty;
}
