/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/column.h"

#include "broker/campaign.h"

bool cv_broker_column(struct cv_broker *broker, uint64_t id, uint64_t number, struct cv_holding *ret) {
  const struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  struct cv_holding column = {0};
  if (campaign == NULL || number >= campaign->spec.arms) {
    return false;
  }
  column.is_share = campaign->spec.brokers == 2;
  for (size_t i = 0; i < campaign->releases; i++) {
    const struct cv_broker_release *release = &campaign->release[i];
    column.releases += release->arm == number;
    /* Of a campaign that has stopped only the releases are left. A release sums the arm's tokens, or its plan's. */
    column.tokens = release->arm == number && release->tokens > column.tokens ? release->tokens : column.tokens;
  }
  if (campaign->arm != NULL) {
    const struct cv_arm *arm = &campaign->arm[number];
    column.tokens = arm->before + arm->seen;
    column.has_epoch = arm->plan != 0;
    column.places_open = column.has_epoch ? arm->want - arm->filled : 0;
    column.epoch_tokens = column.has_epoch ? arm->seen : 0;
    column.has_noise = column.has_epoch && cv_spec_has_noise(&campaign->spec);
  }
  column.spent_micro = campaign->ledger.arm == NULL ? 0 : campaign->ledger.arm[number].spent_micro;
  *ret = column;
  return true;
}
