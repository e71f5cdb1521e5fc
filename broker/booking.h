/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that count a token: its slot and place are taken, its worker is charged, the journal has it. */
#ifndef CV_BROKER_BOOKING_H
#define CV_BROKER_BOOKING_H

#include <stdint.h>

#include "broker/both/kinds.h"
#include "common/base/err.h"

struct cv_broker;
struct cv_broker_campaign;
struct cv_entry;

/* What a token takes: its worker's slot and question, room in the worker's account, and what holds it: the chunk with
 * this number of the places, or of the workers' answers to gold items. */
struct cv_booking {
  uint64_t worker, question;
  uint32_t slot, shown; /* arms that it covers */
  enum cv_kind kind;
  struct cv_chunks *chunks;
  uint64_t number;
};

/* Creates every chunk that taking needs, so that it cannot fail later. CV_ERR_LIMIT, CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_booking_prepare(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                           const struct cv_booking *booking);
/* Takes the slot, charges the worker and returns what holds the token. The same errors, without any change. */
CV_MUST_USE enum cv_err cv_booking_take(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                        const struct cv_booking *booking, struct cv_chunk **ret);
/* Takes slot and question for nothing: the token counts nowhere and charges nobody. The same errors. */
CV_MUST_USE enum cv_err cv_booking_spoil(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint64_t worker,
                                         uint32_t slot, uint64_t question);
/* Adds the entry to the journal. */
void cv_booking_note(struct cv_broker *broker, struct cv_broker_campaign *campaign, const struct cv_entry *entry);
/* Records a token whose place and slot are taken: journal, counts and payment. */
void cv_booking_count(struct cv_broker *broker, struct cv_broker_campaign *campaign, const struct cv_entry *entry);

#endif
