/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/places.h"

#include <stdlib.h>

#include "broker/campaign.h"
#include "broker/dirty.h"
#include "broker/two.h"
#include "common/base/array.h"

uint64_t cv_place_bit(const struct cv_arm *arm, uint32_t position) {
  return arm->round + position;
}

bool cv_places_are_past(const struct cv_broker_campaign *campaign, uint64_t chunk) {
  return (chunk + 1) * CV_CHUNK_BITS <= campaign->planned;
}

void cv_places_drop(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  struct cv_chunks *places = &campaign->places;
  for (uint32_t i = 0; i < places->count && cv_places_are_past(campaign, places->number[i]);) {
    struct cv_chunk *chunk = cv_chunks_find(places, places->number[i]);
    if (chunk->written == 0) {
      cv_chunks_drop(places, chunk);
    } else {
      cv_dirty_chunk(broker, campaign->id, CV_CHUNK_PLACES, chunk);
      i++;
    }
  }
}

/* ---- assignment ---- */

uint32_t cv_arm_free_places(const struct cv_arm *arm) {
  return arm->plan == 0 ? 0 : arm->want - arm->next + arm->returned_count;
}

/* ---- places to assign: returned ones first, the last of them at once, so that whoever answers late in the order of
 * places meets its substitute only halfway ---- */

static void push_returned(struct cv_arm *arm, uint32_t position) {
  arm->returned_low = arm->returned_count == 0 || position < arm->returned_low ? position : arm->returned_low;
  arm->returned[arm->returned_count++] = position;
}

/* The entry of the last returned place below `end`; the number of entries if there is none. A search in vain learns the
 * lowest place, so that it is not repeated. */
static uint32_t find_returned(struct cv_arm *arm, uint64_t end) {
  uint32_t low = UINT32_MAX;
  if (arm->returned_count == 0 || arm->returned_low >= end) {
    return arm->returned_count;
  }
  for (uint32_t i = arm->returned_count; i-- > 0;) {
    if (arm->returned[i] < end) {
      return i;
    }
    low = arm->returned[i] < low ? arm->returned[i] : low;
  }
  arm->returned_low = low;
  return arm->returned_count;
}

/* How many positions of the open epoch lie below a place of the arm's stream. */
static uint64_t positions_below(const struct cv_arm *arm, uint64_t below) {
  return below > arm->first ? below - arm->first : 0;
}

bool cv_arm_has_place(struct cv_arm *arm, uint64_t below) {
  uint64_t end = positions_below(arm, below);
  return cv_arm_free_places(arm) > 0 &&
         ((arm->next < arm->want && arm->next < end) || find_returned(arm, end) < arm->returned_count);
}

bool cv_arm_lacks_place(struct cv_broker_campaign *campaign, uint32_t index, uint64_t below) {
  const struct cv_arm *arm = &campaign->arm[index];
  uint64_t end = below < arm->first + arm->want ? below : arm->first + arm->want;
  uint64_t bit = cv_place_bit(arm, 0), last = bit + (end > arm->first ? end - arm->first : 0);
  return end > arm->first && cv_chunks_unset(&campaign->places, bit, last) < last;
}

bool cv_arm_take_place(struct cv_broker_campaign *campaign, uint32_t index, uint64_t below, uint32_t *ret_position) {
  struct cv_arm *arm = &campaign->arm[index];
  while (cv_arm_has_place(arm, below)) {
    uint32_t at = find_returned(arm, positions_below(arm, below)), position;
    if (at < arm->returned_count) {
      position = arm->returned[at];
      arm->returned[at] = arm->returned[--arm->returned_count];
    } else {
      position = arm->next++;
    }
    cv_urn_take(&campaign->urn, index, 1);
    /* Already filled, or held by a token that waits: the first worker's token came after the place was offered again,
     * or before a restart, which forgets leases. */
    uint64_t place = cv_place_bit(arm, position);
    if (!cv_chunks_bit(&campaign->places, place) && !cv_two_leave_place(campaign, place)) {
      *ret_position = position;
      return true;
    }
  }
  return false;
}

enum cv_err cv_arm_return_place(struct cv_broker_campaign *campaign, uint32_t index, uint32_t position) {
  struct cv_arm *arm = &campaign->arm[index];
  CV_TRY(CV_ARRAY_ROOM(arm->returned, (size_t)arm->returned_count + 1, arm->returned_cap));
  push_returned(arm, position);
  cv_urn_add(&campaign->urn, index, 1);
  return CV_OK;
}
