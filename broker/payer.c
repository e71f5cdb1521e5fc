/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/payer.h"

#include "broker/campaign.h"
#include "broker/state.h"
#include "broker/two.h"

uint64_t cv_broker_campaign_payer_bit(const struct cv_broker_campaign *campaign, uint64_t worker, uint32_t slot) {
  return worker * campaign->spec.tokens_per_worker + slot;
}

uint64_t cv_broker_campaign_charge(const struct cv_broker_campaign *campaign, uint32_t shown) {
  uint64_t charge;
  return __builtin_mul_overflow(campaign->privacy.cost_micro, shown, &charge) ? UINT64_MAX : charge;
}

/* A worker that has given one exact score has nothing left to protect here, and may give its other tokens. */
static bool has_given(struct cv_broker_campaign *campaign, uint64_t worker) {
  uint32_t slots = campaign->spec.tokens_per_worker;
  return cv_chunks_count(&campaign->payers, cv_broker_campaign_payer_bit(campaign, worker, 0), slots) > 0;
}

enum cv_pays cv_broker_campaign_can_pay(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint64_t worker,
                                        uint32_t shown) {
  uint64_t spent = cv_accounts_spent(&broker->accounts, worker), most = broker->config.limits.worker_epsilon_micro;
  if (cv_privacy_is_unprotected(&campaign->privacy)) { /* the first token takes all that is left */
    return spent < most || has_given(campaign, worker) ? CV_PAYS : CV_PAYS_NEVER;
  }
  spent = cv_ledger_add(spent, cv_broker_campaign_charge(campaign, shown));
  if (spent > most || cv_two_is_spent(campaign, worker)) {
    return CV_PAYS_NEVER;
  }
  /* Tokens that wait for a co-broker are not charged yet, and may all count, or not. */
  return cv_ledger_add(spent, cv_two_waiting_micro(broker, worker)) <= most ? CV_PAYS : CV_PAYS_LATER;
}

bool cv_broker_campaign_has_room(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                 const struct cv_identity *identity, uint64_t worker, uint32_t slot,
                                 uint64_t question) {
  uint64_t first = cv_broker_campaign_payer_bit(campaign, identity->first, 0);
  uint64_t last = cv_broker_campaign_payer_bit(campaign, identity->last, campaign->spec.tokens_per_worker - 1);
  uint64_t cells = worker / CV_CHUNK_CELLS, first_cells = identity->first / CV_CHUNK_CELLS,
           last_cells = identity->last / CV_CHUNK_CELLS;
  return cv_chunks_has_room(&broker->accounts.cells, cells, first_cells, last_cells) &&
         cv_answered_has_room(&campaign->answered, worker, slot, question, identity->first, identity->last) &&
         (campaign->gold.terms.items == 0 ||
          cv_chunks_has_room(&campaign->gold.workers, cells, first_cells, last_cells)) &&
         cv_chunks_has_room(&campaign->payers, cv_broker_campaign_payer_bit(campaign, worker, slot) / CV_CHUNK_BITS,
                            first / CV_CHUNK_BITS, last / CV_CHUNK_BITS);
}
