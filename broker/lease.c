/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open assignments of a connection: a list by deadline and a list of free places, in one array; and what becomes of
 * them: answered, run out, offered to somebody else as well, given back.
 */
#include <stdlib.h>

#include "broker/state.h"

static const uint32_t NONE = CV_LEASE_NONE;

static void unlink_at(struct cv_broker_conn *conn, uint32_t at) {
  struct cv_lease *lease = &conn->lease[at];
  *(lease->before == NONE ? &conn->lease_first : &conn->lease[lease->before].after) = lease->after;
  *(lease->after == NONE ? &conn->lease_last : &conn->lease[lease->after].before) = lease->before;
  lease->campaign = 0;
  lease->after = conn->lease_free;
  conn->lease_free = at;
  conn->outstanding--;
}

enum cv_err cv_lease_room(struct cv_broker_conn *conn) {
  if (conn->lease_free != NONE) {
    return CV_OK;
  }
  uint32_t cap = conn->leases == 0 ? 64 : conn->leases * 2;
  struct cv_lease *grown = realloc(conn->lease, cap * sizeof(*grown));
  if (grown == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = conn->leases; i < cap; i++) {
    grown[i] = (struct cv_lease){.after = i + 1 < cap ? i + 1 : NONE};
  }
  conn->lease = grown;
  conn->lease_free = conn->leases;
  conn->leases = cap;
  return CV_OK;
}

uint32_t cv_lease_link(struct cv_broker_conn *conn, const struct cv_lease *terms) {
  uint32_t at = conn->lease_free;
  struct cv_lease *lease = &conn->lease[at];
  conn->lease_free = lease->after;
  *lease = *terms;
  lease->before = conn->lease_last;
  lease->after = NONE;
  *(conn->lease_last == NONE ? &conn->lease_first : &conn->lease[conn->lease_last].after) = at;
  conn->lease_last = at;
  conn->outstanding++;
  return at;
}

/* ---- what becomes of one ---- */

static void give_place_back(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_lease *lease) {
  const struct cv_arm *arm = &campaign->arm[lease->arm];
  bool is_open = arm->plan == lease->plan &&
                 !cv_chunks_bit(&campaign->places, cv_epoch_place_bit(lease->arm, arm->first + lease->position));
  broker->failed = (is_open && cv_arm_return_place(campaign, lease->arm, lease->position) != CV_OK) || broker->failed;
}

void cv_lease_end(struct cv_broker *broker, struct cv_broker_conn *conn, uint32_t at) {
  struct cv_lease lease = conn->lease[at];
  unlink_at(conn, at);
  struct cv_dealing *dealing = cv_dealing_find(conn, lease.campaign);
  if (dealing != NULL && dealing->held[lease.arm] > 0) {
    dealing->held[lease.arm]--;
  }
  struct cv_campaign *campaign = cv_campaign_find(broker, lease.campaign);
  if (campaign == NULL || campaign->arm == NULL) {
    return;
  }
  cv_offers_clear(&campaign->offered, cv_campaign_payer_bit(campaign, lease.worker, lease.slot));
  if (!lease.again) {
    give_place_back(broker, campaign, &lease);
  }
}

/*
 * When every place of an arm has been given out, those that have not been filled for a while are given out once more:
 * the first answer counts, and nobody waits for the slowest until the end of its lease.
 */
static void offer_again(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t now_ms) {
  for (uint32_t at = conn->lease_first; at != NONE && conn->lease[at].again_ms <= now_ms; at = conn->lease[at].after) {
    struct cv_lease *lease = &conn->lease[at];
    struct cv_campaign *campaign = lease->again ? NULL : cv_campaign_find(broker, lease->campaign);
    /* A paid worker's place is its own. */
    if (campaign != NULL && campaign->arm != NULL && !cv_payroll_is_kept(&campaign->payroll) &&
        campaign->arm[lease->arm].next == campaign->arm[lease->arm].want) {
      lease->again = true;
      give_place_back(broker, campaign, lease);
    }
  }
}

void cv_lease_expire(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t now_ms) {
  bool silent = false;
  while (conn->lease_first != NONE && conn->lease[conn->lease_first].deadline_ms <= now_ms) {
    cv_lease_end(broker, conn, conn->lease_first);
    silent = true;
  }
  if (silent) {
    conn->penalty += conn->penalty < CV_PENALTY_MAX;
    conn->answered = 0;
  }
  offer_again(broker, conn, now_ms);
}

void cv_lease_return_all(struct cv_broker *broker, struct cv_broker_conn *conn) {
  while (conn->lease_first != NONE) {
    cv_lease_end(broker, conn, conn->lease_first);
  }
}

void cv_lease_end_of(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_ticket *ticket) {
  if (ticket->lease >= conn->leases) {
    return;
  }
  const struct cv_lease *lease = &conn->lease[ticket->lease];
  if (lease->campaign == ticket->campaign && lease->plan == ticket->plan && lease->arm == ticket->arm &&
      lease->position == ticket->position && lease->worker == ticket->worker && lease->slot == ticket->slot) {
    cv_lease_end(broker, conn, ticket->lease);
  }
}
