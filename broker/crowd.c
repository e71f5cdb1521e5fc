/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/crowd.h"

#include <string.h>

#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/spent.h"
#include "broker/state.h"
#include "broker/talk.h"
#include "broker/token.h"
#include "broker/workers.h"

static enum cv_err on_arrive(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_arrive *arrive,
                             struct cv_why *why) {
  /* 0 leaves the credit as it is; the upper bound keeps one connection's leases from filling the memory. */
  if (arrive->credit > 0) {
    conn->workers->credit = arrive->credit < CV_CREDIT_MAX ? arrive->credit : CV_CREDIT_MAX;
  }
  broker->said = true;
  for (size_t i = 0; i < arrive->workers; i++) {
    /* A gateway speaks only for its own range; otherwise it could use up other workers' slots and epsilon. */
    if (!cv_identity_vouches_for(&conn->identity, arrive->worker[i])) {
      return cv_fail(why, CV_ERR_DENIED, "worker %llu is outside the certificate's range %s",
                     (unsigned long long)arrive->worker[i], conn->identity.name);
    }
    const struct cv_waiting who = {.worker = arrive->worker[i],
                                   .wish = arrive->wish == NULL ? CV_WISH_NONE : arrive->wish[i]};
    CV_TRY(cv_broker_workers_wait(broker, conn->workers, who));
  }
  return CV_OK;
}

/* A campaign that has ended meanwhile needs no line. */
static void note_decline(struct cv_broker *broker, const struct cv_broker_conn *conn, uint32_t id, const char *what,
                         const char *why) {
  const struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  if (campaign != NULL) {
    cv_broker_note(broker, conn->who, campaign, "%s: %s", what, why != NULL ? why : "no reason given");
  }
}

/* Declining has no penalty: the place becomes free for the next worker. */
static enum cv_err on_decline_one(struct cv_broker *broker, struct cv_broker_conn *conn,
                                  const struct cv_decline *decline) {
  struct cv_ticket ticket;
  enum cv_err err = cv_ticket_open(decline->ticket, &broker->config.tagger, &ticket);
  if (err == CV_ERR_NOMEM) {
    return err;
  }
  conn->workers->gathered++; /* bounds the declined assignments of one turn */
  broker->said = true;
  if (err != CV_OK) {
    cv_refusals_add(&broker->figures.refusals, CV_REFUSED_TICKET);
    cv_broker_note_refused(broker, conn->who, NULL, CV_REFUSED_TICKET,
                           "decline ignored: the ticket was not issued by this broker");
    return CV_OK;
  }
  note_decline(broker, conn, ticket.campaign, ": assignment declined", decline->why);
  CV_TRY(decline->used_up ? cv_broker_spent_say_place(broker, conn, &ticket) : CV_OK);
  cv_broker_workers_end_lease_of(broker, conn->workers, &ticket);
  return CV_OK;
}

static enum cv_err on_decline(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_decline *decline) {
  struct cv_broker_workers *workers = conn->workers;
  const struct cv_leases *leases = &workers->leases;
  struct cv_dealing *dealing =
      decline->campaign > UINT32_MAX ? NULL : cv_dealings_find(&workers->dealings, (uint32_t)decline->campaign);
  /* Counted like an answer: repeating a decline must not be free. */
  if (dealing == NULL || dealing->declined) {
    workers->gathered++;
    broker->said = true;
    return CV_OK;
  }
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, dealing->campaign);
  if (decline->used_up) {
    workers->gathered++;
    /* The requester learns what helps: its own tokens_per_worker, or who else could give. */
    bool has_data = campaign != NULL && decline->why != NULL && strcmp(decline->why, CV_SPENT_WHY) != 0;
    CV_TRY(has_data ? cv_declines_add(&campaign->declines, conn->who, decline->why) : CV_OK);
    return cv_broker_spent_say_arms(broker, conn, campaign, dealing, decline);
  }
  if (campaign != NULL) {
    CV_TRY(cv_declines_add(&campaign->declines, conn->who, decline->why));
    campaign->progressed = true; /* whoever watches it reads why nobody comes */
  }
  dealing->declined = true;
  broker->said = true; /* its places can be assigned to other connections */
  note_decline(broker, conn, dealing->campaign, " declined", decline->why);
  for (uint32_t at = leases->first; at != CV_LEASE_NONE;) {
    uint32_t after = leases->lease[at].after;
    if (leases->lease[at].campaign == dealing->campaign) {
      cv_broker_workers_end_lease(broker, workers, at);
    }
    at = after;
  }
  return CV_OK;
}

enum cv_err cv_broker_crowd_frame(struct cv_broker *broker, struct cv_broker_conn *conn,
                                  const struct cv_crowd_frame *frame, struct cv_why *why) {
  struct cv_broker_workers *workers = conn->workers;
  if (frame->goodbye != NULL) {
    cv_broker_note(broker, conn->who, NULL, "goodbye received: %s", frame->goodbye);
  }
  CV_TRY(cv_broker_greet(broker, conn, &frame->hello, why));
  if (!conn->hello_sent) {
    workers->gather.frame.hello = cv_broker_hello(conn);
  }
  if (frame->assigns + frame->acks + frame->backoffs + frame->campaigns + frame->dones > 0) {
    return cv_fail(why, CV_ERR_DENIED, "unexpected message; only a broker may send it");
  }
  /* Splitting arrivals into many messages, or sending empty frames, must not earn more answers than one message. */
  size_t messages = frame->arrives + frame->tokens + frame->declines;
  workers->gathered += frame->arrives > 1 ? frame->arrives - 1 : messages == 0;
  broker->said = broker->said || workers->gathered > 0;
  /* Declines and tokens first: they free places for the arrivals of the same frame. */
  for (size_t i = 0; i < frame->declines; i++) {
    if (frame->decline[i].has_ticket) {
      CV_TRY(on_decline_one(broker, conn, &frame->decline[i]));
    } else {
      CV_TRY(on_decline(broker, conn, &frame->decline[i]));
    }
  }
  for (size_t i = 0; i < frame->tokens; i++) {
    CV_TRY(cv_broker_count_token(broker, conn, &frame->token[i]));
  }
  /* Checked over the whole frame before any worker enters the queue. */
  size_t arrivals = 0;
  for (size_t i = 0; i < frame->arrives; i++) {
    arrivals += frame->arrive[i].workers;
  }
  if (arrivals > CV_ARRIVALS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "%zu workers arrive in one frame; expected at most %d", arrivals,
                   CV_ARRIVALS_MAX);
  }
  for (size_t i = 0; i < frame->arrives; i++) {
    CV_TRY(on_arrive(broker, conn, &frame->arrive[i], why));
  }
  return CV_OK;
}
