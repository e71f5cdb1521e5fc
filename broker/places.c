/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/places.h"

#include <stdlib.h>

#include "broker/campaign.h"
#include "common/base/array.h"

/* A bit's number: the place's index in the low bits, the arm above them. Whole chunks belong to one arm, so that the
 * chunks of closed epochs can be deleted. */
enum { INDEX_BITS = 40 };

uint64_t cv_epoch_place_bit(uint32_t arm, uint64_t index) {
  return (uint64_t)arm << INDEX_BITS | index;
}

bool cv_epoch_has_place(const struct cv_broker_campaign *campaign, uint32_t arm, uint64_t index) {
  return arm < campaign->spec.arms && index >> INDEX_BITS == 0;
}

uint32_t cv_epoch_place_arm(uint64_t bit) {
  return (uint32_t)(bit >> INDEX_BITS);
}

uint32_t cv_arm_free_places(const struct cv_arm *arm) {
  return arm->plan == 0 ? 0 : arm->want - arm->next + arm->returned_count;
}

bool cv_arm_take_place(struct cv_broker_campaign *campaign, uint32_t index, uint32_t *ret_position) {
  struct cv_arm *arm = &campaign->arm[index];
  while (cv_arm_free_places(arm) > 0) {
    uint32_t position = arm->returned_count > 0 ? arm->returned[--arm->returned_count] : arm->next++;
    campaign->free_places--;
    /* Already filled: the first worker's token came after the place was offered again, or before a
     * restart, which forgets leases. */
    if (!cv_chunks_bit(&campaign->places, cv_epoch_place_bit(index, arm->first + position))) {
      *ret_position = position;
      return true;
    }
  }
  return false;
}

enum cv_err cv_arm_return_place(struct cv_broker_campaign *campaign, uint32_t index, uint32_t position) {
  struct cv_arm *arm = &campaign->arm[index];
  CV_TRY(CV_ARRAY_ROOM(arm->returned, (size_t)arm->returned_count + 1, arm->returned_cap));
  arm->returned[arm->returned_count++] = position;
  campaign->free_places++;
  return CV_OK;
}
