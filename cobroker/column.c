/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/column.h"

#include "cobroker/campaign.h"

bool cv_cobroker_column(struct cv_cobroker *core, uint64_t id, uint64_t number, struct cv_holding *ret) {
  const struct cv_cobroker_campaign *campaign = cv_cobroker_campaign_find(core, id);
  if (campaign == NULL || number >= campaign->spec.arms) {
    return false;
  }
  const struct cv_cobroker_arm *arm = &campaign->arm[number];
  struct cv_holding column = {.is_share = true,
                              .tokens = arm->first,
                              .releases = arm->mechanism == NULL ? 0 : arm->mechanism->releases,
                              .spent_micro = campaign->ledger.arm[number].spent_micro};
  if (arm->plan != 0) {
    column.has_epoch = column.has_noise = true; /* a law without noise is refused */
    column.tokens += arm->filled;
    column.epoch_tokens = arm->filled;
    column.places_open = arm->want - arm->filled;
  }
  *ret = column;
  return true;
}
