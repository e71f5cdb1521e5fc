/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/workers.h"

#include <stdlib.h>

#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/payer.h"
#include "broker/places.h"
#include "broker/question.h"
#include "broker/state.h"
#include "broker/two.h"
#include "common/base/array.h"

enum { ARRIVE_LATER_MS = 1000 };
static const uint32_t NONE = CV_LEASE_NONE;

struct cv_broker_workers *cv_broker_workers_new(void) {
  struct cv_broker_workers *workers = calloc(1, sizeof(*workers));
  if (workers != NULL) {
    /* A newcomer may not answer at all: it gets few places of an arm until it has answered some. */
    workers->penalty = CV_PENALTY_NEW;
    cv_leases_init(&workers->leases);
  }
  return workers;
}

void cv_broker_workers_free(struct cv_broker_workers *workers) {
  if (workers == NULL) {
    return;
  }
  cv_dealings_fini(&workers->dealings);
  cv_leases_fini(&workers->leases);
  free(workers->waiting);
  cv_broker_outbox_fini(&workers->gather);
  cv_broker_outbox_fini(&workers->ready);
  free(workers);
}

/* ---- shares ---- */

size_t cv_broker_workers_share(const struct cv_broker *broker) {
  size_t share = CV_GATHER_ALL / (broker->crowd_conns + 1);
  return share < CV_GATHER_LEAST ? CV_GATHER_LEAST : share;
}

uint32_t cv_broker_workers_places(const struct cv_broker *broker, const struct cv_broker_workers *workers,
                                  const struct cv_arm *arm) {
  /* A fair part of the epoch, so that one connection cannot hold all its places; at least one place always. */
  uint32_t fair = arm->want / (broker->crowd_conns > 0 ? broker->crowd_conns : 1);
  uint32_t most = (fair > CV_SHARE_MIN ? fair : CV_SHARE_MIN) >> workers->penalty;
  return most > 0 ? most : 1;
}

void cv_broker_workers_reward(struct cv_broker_workers *workers) {
  if (workers->penalty > 0 && ++workers->answered >= (uint32_t)CV_SHARE_MIN >> workers->penalty) {
    workers->penalty--;
    workers->answered = 0;
  }
}

/* ---- queue and answers ---- */

enum cv_err cv_broker_workers_turn_away(struct cv_broker *broker, struct cv_broker_workers *workers, uint64_t worker,
                                        uint32_t delay_ms, uint64_t campaign, const char *why) {
  enum { RUN = 64, LAST = 8 /* messages that can still grow: answers of several campaigns alternate */ };
  struct cv_broker_outbox *out = &workers->gather;
  struct cv_backoff *last = NULL;
  for (size_t i = out->frame.backoffs; last == NULL && i-- > 0 && i + LAST >= out->frame.backoffs;) {
    struct cv_backoff *each = &out->frame.backoff[i];
    last = each->why == why && each->campaign == campaign && each->workers < RUN ? each : NULL;
  }
  if (last == NULL) {
    /* Workers that get the same answer share a message, so that a queue of thousands costs a few dozen. */
    uint64_t *run = calloc(RUN, sizeof(*run));
    last = run == NULL ? NULL : CV_ARRAY_PUSH(out->frame.backoff, out->frame.backoffs, out->backoffs_cap);
    if (last == NULL) {
      free(run);
      return CV_ERR_NOMEM;
    }
    *last = (struct cv_backoff){.worker = run, .delay_ms = delay_ms, .why = why, .campaign = campaign};
  }
  ((uint64_t *)(uintptr_t)last->worker)[last->workers++] = worker;
  workers->gathered++;
  broker->said = true;
  return CV_OK;
}

enum cv_err cv_broker_workers_wait(struct cv_broker *broker, struct cv_broker_workers *workers, struct cv_waiting who) {
  if (workers->waiting_count == broker->config.limits.queue) {
    return cv_broker_workers_turn_away(broker, workers, who.worker, ARRIVE_LATER_MS, 0,
                                       "the queue of this connection is full");
  }
  CV_TRY(CV_ARRAY_RING_ROOM(workers->waiting, workers->waiting_head, workers->waiting_count, workers->waiting_cap));
  workers->waiting[(workers->waiting_head + workers->waiting_count++) % workers->waiting_cap] = who;
  return CV_OK;
}

enum cv_err cv_broker_workers_tell_done(struct cv_broker *broker, const struct cv_broker_campaign *campaign) {
  for (struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    struct cv_broker_workers *workers = conn->workers;
    struct cv_dealing *dealing = workers == NULL ? NULL : cv_dealings_find(&workers->dealings, campaign->id);
    if (dealing == NULL || !dealing->told || dealing->done_told) {
      continue;
    }
    struct cv_broker_outbox *out = &workers->gather;
    uint64_t *done = CV_ARRAY_PUSH(out->frame.done, out->frame.dones, out->dones_cap);
    if (done == NULL) {
      return CV_ERR_NOMEM;
    }
    *done = campaign->id;
    dealing->done_told = true;
    broker->said = true;
  }
  return CV_OK;
}

void cv_broker_workers_swap(struct cv_broker_workers *workers) {
  struct cv_broker_outbox out = workers->ready;
  workers->ready = workers->gather;
  workers->gather = out;
  workers->gathered = 0;
}

/* ---- ends of leases ---- */

/* Makes the lease's place available again, if its epoch is open and no other worker has filled the place. */
static void give_place_back(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                            const struct cv_lease *lease) {
  uint32_t index = cv_broker_gold_arm_of(&campaign->gold, lease->item);
  if (index >= campaign->spec.arms) { /* a question about a gold item has none */
    return;
  }
  const struct cv_arm *arm = &campaign->arm[index];
  uint64_t place = cv_place_bit(arm, lease->position);
  bool is_open =
      arm->plan == lease->plan && !cv_chunks_bit(&campaign->places, place) && !cv_two_leave_place(campaign, place);
  broker->failed = (is_open && cv_arm_return_place(campaign, index, lease->position) != CV_OK) || broker->failed;
}

void cv_broker_workers_end_lease(struct cv_broker *broker, struct cv_broker_workers *workers, uint32_t at) {
  struct cv_lease lease = cv_leases_take(&workers->leases, at);
  struct cv_dealing *dealing = cv_dealings_find(&workers->dealings, lease.campaign);
  if (dealing != NULL && dealing->held[lease.item] > 0) {
    dealing->held[lease.item]--;
  }
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, lease.campaign);
  if (campaign == NULL || campaign->arm == NULL) {
    return;
  }
  if (campaign->two != NULL) {
    campaign->two->leased--;
  }
  /* The slot may be assigned again; if its token was accepted, its payer bit keeps it used, and if it waits, it stays
   * offered. */
  uint64_t payer = cv_broker_campaign_payer_bit(campaign, lease.worker, lease.slot);
  if (!cv_two_leave_payer(campaign, payer)) {
    cv_offers_clear(&campaign->offered, payer);
    cv_broker_question_end(campaign, lease.worker, lease.question);
  }
  /* A place that was offered again is already back. */
  if (!lease.again) {
    give_place_back(broker, campaign, &lease);
  }
}

void cv_broker_workers_end_lease_of(struct cv_broker *broker, struct cv_broker_workers *workers,
                                    const struct cv_ticket *ticket) {
  uint32_t at = cv_leases_find(&workers->leases, ticket);
  if (at != NONE) {
    cv_broker_workers_end_lease(broker, workers, at);
  }
}

/*
 * When every place of an arm has been assigned, places without an answer for a while are assigned a second time: the
 * first answer counts, so the epoch does not wait for the slowest worker until its lease ends. A gold item is asked
 * beside an arm, and its question becomes one that may be late when one of that arm does.
 */
static void offer_again(struct cv_broker *broker, struct cv_leases *leases, uint64_t now_ms) {
  for (uint32_t at = leases->first; at != NONE && leases->lease[at].again_ms <= now_ms; at = leases->lease[at].after) {
    struct cv_lease *lease = &leases->lease[at];
    struct cv_broker_campaign *campaign = lease->again ? NULL : cv_broker_campaign_find(broker, lease->campaign);
    uint32_t arm = campaign == NULL ? CV_BROKER_ARM_NONE : cv_broker_gold_arm_of(&campaign->gold, lease->item);
    if (campaign != NULL && arm >= campaign->spec.arms) {
      arm = lease->position;
    }
    /* A recruited worker's place is reserved for it. */
    if (campaign != NULL && campaign->arm != NULL && !cv_payroll_is_kept(&campaign->payroll) &&
        arm < campaign->spec.arms && campaign->arm[arm].next == campaign->arm[arm].want) {
      lease->again = true;
      give_place_back(broker, campaign, lease);
    }
  }
}

void cv_broker_workers_expire(struct cv_broker *broker, struct cv_broker_workers *workers, uint64_t now_ms) {
  struct cv_leases *leases = &workers->leases;
  bool silent = false;
  while (leases->first != NONE && leases->lease[leases->first].deadline_ms <= now_ms) {
    cv_broker_workers_end_lease(broker, workers, leases->first);
    silent = true;
  }
  /* Once per call, however many leases expired: the share is halved. */
  if (silent) {
    workers->penalty += workers->penalty < CV_PENALTY_MAX;
    workers->answered = 0;
  }
  offer_again(broker, leases, now_ms);
}

void cv_broker_workers_return_all(struct cv_broker *broker, struct cv_broker_workers *workers) {
  while (workers->leases.first != NONE) {
    cv_broker_workers_end_lease(broker, workers, workers->leases.first);
  }
}
