/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token is accepted if its ticket is genuine and both place and slot are free. Then both are taken, the worker is
 * charged and the sums grow, all in the batch that precedes the acknowledgement.
 */
#include "broker/token.h"

#include <string.h>

#include "broker/booking.h"
#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/epoch.h"
#include "broker/payer.h"
#include "broker/places.h"
#include "broker/question.h"
#include "broker/sharing.h"
#include "broker/shown.h"
#include "broker/state.h"
#include "broker/talk.h"
#include "broker/workers.h"
#include "common/base/array.h"

/*
 * A genuine ticket of a campaign or plan that this broker does not know: another one, with the same key of tickets,
 * goes on with this database. Nothing is answered: `expired` could be a lie about a token that the other one has
 * counted.
 */
static bool is_of_a_later_term(const struct cv_broker *broker, const struct cv_broker_campaign *campaign,
                               const struct cv_ticket *ticket) {
  return broker->config.term > 0 &&
         (campaign != NULL ? ticket->plan > campaign->plans : ticket->campaign > broker->totals.campaigns);
}

/* Checks everything about a token that does not depend on tokens accepted before. */
static enum cv_verdict check_token(const struct cv_broker *broker, const struct cv_broker_conn *conn,
                                   const struct cv_broker_campaign *campaign, const struct cv_ticket *ticket,
                                   const struct cv_token *token, struct cv_objection *ret) {
  /* First, so that the answer to another worker's ticket does not tell what has become of it. */
  if (!cv_identity_vouches_for(&conn->identity, ticket->worker)) {
    return cv_objection_make(ret, CV_REFUSED_WORKER, "the ticket belongs to a worker outside this certificate");
  }
  if (campaign == NULL && ticket->campaign <= broker->totals.campaigns) {
    return CV_VERDICT_EXPIRED; /* the campaign has ended and was freed */
  }
  if (campaign == NULL) {
    return cv_objection_make(ret, CV_REFUSED_CAMPAIGN, "the ticket's campaign is unknown");
  }
  if ((campaign->two != NULL) != (token->share != NULL)) {
    return cv_objection_make(ret, CV_REFUSED_VALUE,
                             campaign->two != NULL ? "no share; expected one, because the campaign has two brokers"
                                                   : "a share; expected values, because the campaign has one broker");
  }
  if (campaign->two != NULL) {
    return CV_VERDICT_ACCEPTED; /* its proof says whether it is in range */
  }
  if (campaign->shown_most == 1 && token->values != 1) {
    return cv_objection_make(ret, CV_REFUSED_VALUE, "wrong number of values; expected one");
  }
  /* A value that no genuine privatizer sends would exceed the sensitivity that the noise is made for. */
  for (size_t i = 0; i < token->values; i++) {
    if (!cv_local_sends(&campaign->privacy.local, token->value[i])) {
      return cv_objection_make(ret, CV_REFUSED_VALUE, "the value is out of range");
    }
  }
  return CV_VERDICT_ACCEPTED;
}

/* A token whose ticket and values are in order. */
struct given {
  const struct cv_identity *identity; /* of its connection */
  const struct cv_ticket *ticket;
  const struct cv_token *token;
  uint32_t arm; /* see gold.h */
  uint64_t question;
  uint32_t n, shown[CV_VALUES_MAX]; /* the arms that it covers */
};

/* Takes the slot, charges the worker and takes what holds the token. CV_ERR_LIMIT, without any change, if a table is
 * full. */
static enum cv_err take(struct cv_broker *broker, struct cv_broker_campaign *campaign, const struct given *given,
                        enum cv_kind kind, struct cv_chunks *chunks, uint64_t number, struct cv_chunk **ret) {
  const struct cv_ticket *ticket = given->ticket;
  const struct cv_booking booking = {.worker = ticket->worker,
                                     .question = given->question,
                                     .slot = ticket->slot,
                                     .shown = given->n,
                                     .kind = kind,
                                     .chunks = chunks,
                                     .number = number};
  return cv_broker_campaign_has_room(broker, campaign, given->identity, ticket->worker, ticket->slot, given->question)
             ? cv_booking_take(broker, campaign, &booking, ret)
             : CV_ERR_LIMIT;
}

/* A token for which a table has no room is expired: at its next arrival the worker is told when to come again. A
 * later term may have room. Other errors pass. */
static enum cv_err without_room(struct cv_broker *broker, enum cv_err err) {
  if (err != CV_ERR_LIMIT) {
    return err;
  }
  cv_broker_only_with_a_commit(broker);
  return CV_OK;
}

/* Adds an answer to a gold item to its worker's account. It is no token of any arm: no limit counts it. */
static enum cv_err count_gold(struct cv_broker *broker, struct cv_broker_campaign *campaign, const struct given *given,
                              enum cv_verdict *ret_verdict) {
  struct cv_chunk *answers;
  const struct cv_ticket *ticket = given->ticket;
  struct cv_broker_gold *gold = &campaign->gold;
  enum cv_err err =
      take(broker, campaign, given, CV_CHUNK_GOLD, &gold->workers, ticket->worker / CV_CHUNK_CELLS, &answers);
  if (err != CV_OK) {
    return without_room(broker, err);
  }
  bool wrong = cv_gold_is_wrong(&gold->terms, &campaign->privacy.local, given->arm - campaign->spec.arms,
                                given->token->value[0]);
  broker->figures.gold_answers++;
  broker->figures.gold_found += cv_broker_gold_add(gold, answers, ticket->worker, wrong);
  const struct cv_entry entry = {.worker = ticket->worker,
                                 .question = given->question,
                                 .arm = campaign->spec.arms + wrong,
                                 .slot = ticket->slot,
                                 .shown = 1};
  cv_booking_note(broker, campaign, &entry);
  *ret_verdict = CV_VERDICT_ACCEPTED;
  return CV_OK;
}

/* Fills the free place of an arm, and adds the values to the sums. */
static enum cv_err fill_place(struct cv_broker *broker, struct cv_broker_campaign *campaign, const struct given *given,
                              enum cv_verdict *ret_verdict) {
  const struct cv_ticket *ticket = given->ticket;
  uint64_t place = cv_place_bit(&campaign->arm[given->arm], ticket->position);
  struct cv_chunk *places;
  enum cv_err err = take(broker, campaign, given, CV_CHUNK_PLACES, &campaign->places, place / CV_CHUNK_BITS, &places);
  if (err != CV_OK) {
    return without_room(broker, err);
  }
  CV_TRY(cv_chunks_set(&campaign->places, place, &places));
  const struct cv_entry entry = {.index = place,
                                 .worker = ticket->worker,
                                 .question = given->question,
                                 .arm = given->arm,
                                 .slot = ticket->slot,
                                 .shown = given->n};
  cv_booking_count(broker, campaign, &entry);
  *ret_verdict = CV_VERDICT_ACCEPTED;
  const int64_t *value = given->token->value;
  int64_t neutral;
  if (cv_broker_gold_has_found(&campaign->gold, ticket->worker)) {
    neutral = cv_gold_neutral(&campaign->privacy.local, broker->config.noise);
    value = &neutral; /* with gold items a token covers one arm */
    if (campaign->gold.neutral != NULL) {
      campaign->gold.neutral[given->arm]++;
    }
  }
  return cv_epoch_add(broker, campaign, given->shown, given->n, value);
}

/* Whether an answer to a gold item comes so late that the place of one to the arm beside would be taken: a worker must
 * not tell gold items by which late answers count. */
static bool is_late_for_gold(const struct cv_broker_workers *workers, const struct cv_broker_campaign *campaign,
                             const struct cv_ticket *ticket) {
  uint32_t at = cv_leases_find(&workers->leases, ticket);
  return (at == CV_LEASE_NONE || workers->leases.lease[at].again) &&
         (ticket->position >= campaign->spec.arms || campaign->arm[ticket->position].plan != ticket->plan);
}

/* Whether the ticket's place is taken by another worker, or its epoch is over. */
static bool is_late(struct cv_broker_campaign *campaign, const struct cv_ticket *ticket, uint32_t index) {
  const struct cv_arm *arm = &campaign->arm[index];
  if (arm->plan != ticket->plan || ticket->position >= arm->want) {
    return true;
  }
  return cv_chunks_bit(&campaign->places, cv_place_bit(arm, ticket->position));
}

/* Accepts the token if place and slot are free: takes both and adds its values, in one batch. */
static enum cv_err count_token(struct cv_broker *broker, struct cv_broker_conn *conn,
                               struct cv_broker_campaign *campaign, const struct cv_ticket *ticket,
                               const struct cv_token *token, enum cv_verdict *ret_verdict, struct cv_objection *ret) {
  /* The slot is tested before the place: a repeated token is a duplicate even if its epoch has closed. */
  if (campaign->arm != NULL &&
      cv_chunks_bit(&campaign->payers, cv_broker_campaign_payer_bit(campaign, ticket->worker, ticket->slot))) {
    *ret_verdict = CV_VERDICT_DUPLICATE;
    return CV_OK;
  }
  *ret_verdict = CV_VERDICT_EXPIRED;
  if (campaign->two != NULL) {
    return campaign->arm == NULL || ticket->item >= campaign->spec.arms
               ? CV_OK
               : cv_sharing_arrive(broker, conn, campaign, ticket, token, ret_verdict, ret);
  }
  struct given given = {.identity = &conn->identity, .ticket = ticket, .token = token, .n = 1};
  given.arm = cv_broker_gold_arm_of(&campaign->gold, ticket->item);
  bool is_gold = given.arm >= campaign->spec.arms;
  if (campaign->arm == NULL || given.arm == CV_BROKER_ARM_NONE ||
      (is_gold ? is_late_for_gold(conn->workers, campaign, ticket) : is_late(campaign, ticket, given.arm))) {
    return CV_OK;
  }
  given.question = cv_broker_question_number(campaign, given.arm, 0);
  if (!is_gold) {
    CV_TRY(cv_broker_question_of_place(broker, campaign, given.arm, ticket->position, &given.question));
  }
  if (cv_answered_has(&campaign->answered, ticket->worker, given.question)) {
    return CV_OK; /* it was asked again after its lease, and has answered both times */
  }
  given.n = is_gold ? 1 : cv_shown_list(campaign, given.arm, given.shown);
  if (token->values != given.n) {
    *ret_verdict = cv_objection_make(ret, CV_REFUSED_VALUE, "wrong number of values; expected one per assigned arm");
    return CV_OK;
  }
  enum cv_pays pays = cv_broker_campaign_can_pay(broker, campaign, ticket->worker, given.n);
  if (pays == CV_PAYS_NEVER) { /* its epsilon was spent elsewhere */
    *ret_verdict = cv_objection_make(ret, CV_REFUSED_EPSILON, CV_LIFETIME_SPENT);
  }
  if (pays != CV_PAYS) {
    return CV_OK;
  }
  return is_gold ? count_gold(broker, campaign, &given, ret_verdict)
                 : fill_place(broker, campaign, &given, ret_verdict);
}

/* The lease is over in either case: counts the outcome. */
static void count_verdict(struct cv_broker *broker, struct cv_broker_conn *conn,
                          const struct cv_broker_campaign *campaign, enum cv_verdict verdict,
                          const struct cv_objection *objection) {
  struct cv_broker_figures *figures = &broker->figures;
  switch (verdict) {
    case CV_VERDICT_ACCEPTED:
      cv_broker_workers_reward(conn->workers);
      break;
    case CV_VERDICT_DUPLICATE:
      figures->duplicates++;
      break;
    case CV_VERDICT_EXPIRED:
      figures->expired++;
      break;
    default:
      figures->refused++;
      cv_refusals_add(&figures->refusals, objection->kind);
      cv_broker_note_refused(broker, conn->who, campaign, objection->kind, "%stoken refused: %s",
                             campaign == NULL ? "" : ": ", objection->why);
      break;
  }
}

static enum cv_err acknowledge(struct cv_broker *broker, struct cv_broker_workers *workers,
                               const struct cv_token *token, enum cv_verdict verdict, const char *why) {
  struct cv_broker_outbox *out = &workers->gather;
  struct cv_crowd_ack *ack = CV_ARRAY_PUSH(out->frame.ack, out->frame.acks, out->acks_cap);
  if (ack == NULL) {
    return CV_ERR_NOMEM;
  }
  workers->gathered += verdict != CV_VERDICT_ACCEPTED; /* the connection's credit bounds accepted ones */
  memcpy(ack->ticket, token->ticket, sizeof(ack->ticket));
  ack->verdict = verdict;
  ack->why = why;
  broker->said = true;
  return CV_OK;
}

enum cv_err cv_broker_count_token(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_token *token) {
  struct cv_broker_workers *workers = conn->workers;
  struct cv_ticket ticket;
  struct cv_broker_campaign *campaign = NULL;
  enum cv_verdict verdict;
  struct cv_objection objection = {.kind = CV_REFUSALS};
  enum cv_err err = cv_ticket_open(token->ticket, &broker->config.tagger, &ticket);
  if (err == CV_ERR_NOMEM) {
    return err;
  }
  if (err != CV_OK) {
    verdict = cv_objection_make(&objection, CV_REFUSED_TICKET, "the ticket was not issued by this broker");
  } else {
    campaign = cv_broker_campaign_find(broker, ticket.campaign);
    if (is_of_a_later_term(broker, campaign, &ticket)) {
      broker->overtaken = true;
      return CV_OK;
    }
    verdict = check_token(broker, conn, campaign, &ticket, token, &objection);
    if (verdict == CV_VERDICT_ACCEPTED) {
      CV_TRY(count_token(broker, conn, campaign, &ticket, token, &verdict, &objection));
    }
    cv_broker_workers_end_lease_of(broker, workers, &ticket);
  }
  if (verdict == CV_VERDICT_NONE) {
    return CV_OK; /* it waits */
  }
  count_verdict(broker, conn, campaign, verdict, &objection);
  return acknowledge(broker, workers, token, verdict, objection.why);
}
