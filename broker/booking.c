/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/booking.h"

#include "broker/campaign.h"
#include "broker/dirty.h"
#include "broker/payer.h"
#include "broker/state.h"

/* The chunks that a token changes. */
struct touched {
  struct cv_chunk *account, *payer, *holds, *answered; /* NULL if the campaign repeats questions */
};

static void set_answered(struct cv_broker *broker, struct cv_broker_campaign *campaign, struct cv_chunk *chunk,
                         uint64_t worker, uint32_t slot, uint64_t question) {
  if (chunk != NULL) {
    cv_answered_set(&campaign->answered, chunk, worker, slot, question);
    cv_dirty_chunk(broker, campaign->id, CV_CHUNK_ANSWERED, chunk);
  }
}

static enum cv_err touch(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                         const struct cv_booking *booking, struct touched *ret) {
  uint64_t payer = cv_broker_campaign_payer_bit(campaign, booking->worker, booking->slot);
  CV_TRY(cv_chunks_touch(booking->chunks, booking->number, &ret->holds));
  CV_TRY(cv_answered_touch(&campaign->answered, booking->worker, booking->slot, booking->question, &ret->answered));
  CV_TRY(cv_chunks_touch(&broker->accounts.cells, booking->worker / CV_CHUNK_CELLS, &ret->account));
  return cv_chunks_touch(&campaign->payers, payer / CV_CHUNK_BITS, &ret->payer);
}

enum cv_err cv_booking_prepare(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                               const struct cv_booking *booking) {
  struct touched touched;
  return touch(broker, campaign, booking, &touched);
}

static void charge(struct cv_broker *broker, const struct cv_broker_campaign *campaign, struct cv_chunk *chunk,
                   uint64_t worker, uint32_t shown) {
  cv_accounts_pay(&broker->accounts, chunk, worker, cv_broker_campaign_charge(campaign, shown));
  cv_dirty_chunk(broker, 0, CV_CHUNK_ACCOUNTS, chunk);
}

enum cv_err cv_booking_take(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                            const struct cv_booking *booking, struct cv_chunk **ret) {
  /* Create every chunk before setting any bit, so that an error changes nothing. */
  struct touched touched;
  CV_TRY(touch(broker, campaign, booking, &touched));
  CV_TRY(cv_chunks_set(&campaign->payers, cv_broker_campaign_payer_bit(campaign, booking->worker, booking->slot),
                       &touched.payer));
  cv_dirty_chunk(broker, campaign->id, CV_CHUNK_PAYERS, touched.payer);
  cv_dirty_chunk(broker, campaign->id, booking->kind, touched.holds);
  set_answered(broker, campaign, touched.answered, booking->worker, booking->slot, booking->question);
  charge(broker, campaign, touched.account, booking->worker, booking->shown);
  *ret = touched.holds;
  return CV_OK;
}

enum cv_err cv_booking_spoil(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint64_t worker,
                             uint32_t slot, uint64_t question) {
  struct cv_chunk *payer, *answered;
  CV_TRY(cv_answered_touch(&campaign->answered, worker, slot, question, &answered));
  CV_TRY(cv_chunks_set(&campaign->payers, cv_broker_campaign_payer_bit(campaign, worker, slot), &payer));
  cv_dirty_chunk(broker, campaign->id, CV_CHUNK_PAYERS, payer);
  set_answered(broker, campaign, answered, worker, slot, question);
  const struct cv_entry entry = {
      .worker = worker, .question = question, .arm = campaign->spec.arms, .slot = slot, .shown = 1};
  cv_booking_note(broker, campaign, &entry);
  return CV_OK;
}

void cv_booking_note(struct cv_broker *broker, struct cv_broker_campaign *campaign, const struct cv_entry *entry) {
  /* A failed append is found when the batch is filled, and ends the core before anything is acknowledged. */
  cv_buf_put(&campaign->journal, entry, sizeof(*entry));
  broker->changed = true;
  broker->gathered++;
}

void cv_booking_count(struct cv_broker *broker, struct cv_broker_campaign *campaign, const struct cv_entry *entry) {
  cv_booking_note(broker, campaign, entry);
  campaign->arm[entry->arm].filled++;
  campaign->tokens++;
  if (cv_payroll_is_kept(&campaign->payroll)) {
    cv_payroll_pay(&campaign->payroll, &campaign->spec, entry->arm, 1);
  }
  broker->totals.tokens++;
  broker->figures.tokens++;
  campaign->reserved--;
  campaign->active_ms = broker->now_ms;
  campaign->progressed = true;
}
