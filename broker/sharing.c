/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/sharing.h"

#include <string.h>

#include "broker/booking.h"
#include "broker/conn.h"
#include "broker/epoch.h"
#include "broker/payer.h"
#include "broker/places.h"
#include "broker/question.h"
#include "broker/state.h"
#include "broker/talk.h"
#include "broker/two.h"
#include "broker/workers.h"
#include "common/base/array.h"
#include "common/prio/field.h"
#include "common/prio/verify.h"

/* ---- arrival ---- */

static struct cv_booking booking_of(struct cv_broker_campaign *campaign, const struct cv_docket_token *token) {
  return (struct cv_booking){.worker = token->sent.token.worker,
                             .question = token->question,
                             .slot = token->sent.token.slot,
                             .shown = 1,
                             .kind = CV_CHUNK_PLACES,
                             .chunks = &campaign->places,
                             .number = token->place / CV_CHUNK_BITS};
}

enum cv_err cv_sharing_prepare(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                               const struct cv_docket_token *token) {
  const struct cv_booking booking = booking_of(campaign, token);
  return cv_booking_prepare(broker, campaign, &booking);
}

/* The connection gets the token's acknowledgement; NULL: nobody does. */
static void owe(struct cv_docket_token *token, struct cv_broker_conn *conn) {
  if (token->conn != NULL) {
    token->conn->workers->waits--;
  }
  token->conn = conn;
  if (conn != NULL) {
    conn->workers->waits++;
  }
}

/* Whether a waiting token holds the place or the slot of this one: the same one, which then answers to this connection,
 * or another. */
static bool is_held(struct cv_broker_two *two, struct cv_broker_conn *conn, const struct cv_docket_token *token,
                    enum cv_verdict *ret_verdict) {
  struct cv_docket_token *holds = cv_docket_at_payer(&two->docket, token->payer);
  if (holds == NULL || holds->place != token->place) {
    *ret_verdict = CV_VERDICT_EXPIRED;
    return holds != NULL || cv_docket_at_place(&two->docket, token->place) != NULL;
  }
  bool is_same = memcmp(holds->sent.token.nonce, token->sent.token.nonce, CV_SPLIT_NONCE_BYTES) == 0;
  if (is_same) {
    owe(holds, conn);
    memcpy(holds->ticket, token->ticket, sizeof(holds->ticket));
  }
  /* Another answer to the same ticket is not acknowledged: the verdict on the first one will be. */
  bool is_known = is_same || memcmp(holds->ticket, token->ticket, sizeof(holds->ticket)) == 0;
  *ret_verdict = is_known ? CV_VERDICT_NONE : CV_VERDICT_EXPIRED;
  return true;
}

static struct cv_docket_token pending_of(struct cv_broker_campaign *campaign, struct cv_broker_conn *conn,
                                         const struct cv_ticket *ticket, const struct cv_token *token, uint32_t arm) {
  const struct cv_token_share *share = token->share;
  struct cv_docket_token pending = {
      .sent = {.token = {.plan = ticket->plan,
                         .arm = arm,
                         .place = campaign->arm[arm].first + ticket->position,
                         .worker = ticket->worker,
                         .slot = ticket->slot},
               .counter = share->counter},
      .place = cv_place_bit(&campaign->arm[arm], ticket->position),
      .payer = cv_broker_campaign_payer_bit(campaign, ticket->worker, ticket->slot),
      .position = ticket->position,
      .conn = conn,
  };
  memcpy(pending.sent.token.nonce, share->nonce, sizeof(share->nonce));
  memcpy(pending.sent.session, share->session, sizeof(share->session));
  memcpy(pending.sent.sealed, share->sealed, sizeof(share->sealed));
  memcpy(pending.ticket, token->ticket, sizeof(pending.ticket));
  return pending;
}

/* What a broken share is told. */
#define WRONG_LENGTH "the share has a wrong length; expected 48 bytes with score_bits 1, and 376 with score_bits 15"
#define NO_ELEMENT   "the share has a number that is no field element; expected numbers below p = 2^64 - 2^32 + 1"
#define NO_PROOF \
  "its proof fails or its seal does not open; expected shares of a score from 0 to 1, sealed for this assignment"
#define NO_SESSION                                                                                                     \
  "the co-broker knows no session that vouches for the worker; expected a session with the co-broker that the broker " \
  "has"

/* Computes what the co-broker checks the token with, once, and this broker's share of the score. */
static bool verify(const struct cv_broker_two *two, const struct cv_token_share *share, struct cv_docket_token *token) {
  token->sent.verifiers = (uint32_t)two->prio.verifier_elements;
  return cv_prio_verify_leader(&two->prio, two->key, two->context.bytes, sizeof(two->context.bytes), share->nonce,
                               share->leader, share->leader_bytes, token->sent.verifier, &token->output);
}

/* The token waits from now on: its lease is over and leaves it place and slot, which are not offered to anybody. If the
 * lease was over already, another one may have them by now. */
static enum cv_err wait(struct cv_broker *broker, struct cv_broker_conn *conn, struct cv_broker_campaign *campaign,
                        const struct cv_ticket *ticket, const struct cv_docket_token *token) {
  CV_TRY(cv_docket_add(&campaign->two->docket, token));
  cv_broker_workers_end_lease_of(broker, conn->workers, ticket);
  if (!cv_offers_has(&campaign->offered, token->payer)) {
    CV_TRY(cv_offers_set(&campaign->offered, token->payer));
    CV_TRY(cv_broker_question_begin(campaign, ticket->worker, token->question));
    (void)cv_two_leave_payer(campaign, token->payer);
  }
  conn->workers->waits++;
  campaign->active_ms = broker->now_ms;
  broker->changed = true;
  broker->gathered++;
  return CV_OK;
}

enum cv_err cv_sharing_arrive(struct cv_broker *broker, struct cv_broker_conn *conn,
                              struct cv_broker_campaign *campaign, const struct cv_ticket *ticket,
                              const struct cv_token *token, enum cv_verdict *ret_verdict,
                              struct cv_objection *ret_objection) {
  struct cv_broker_two *two = campaign->two;
  uint32_t arm = ticket->item; /* without gold items, items are arms */
  *ret_verdict = CV_VERDICT_EXPIRED;
  if (campaign->arm[arm].plan != ticket->plan || ticket->position >= campaign->arm[arm].want) {
    return CV_OK;
  }
  struct cv_docket_token pending = pending_of(campaign, conn, ticket, token, arm);
  CV_TRY(cv_broker_question_of_place(broker, campaign, arm, ticket->position, &pending.question));
  if (is_held(two, conn, &pending, ret_verdict) || cv_chunks_bit(&campaign->places, pending.place)) {
    return CV_OK;
  }
  /* Without its lease the worker may have been asked again, and may have answered then. */
  bool is_leased = cv_leases_find(&conn->workers->leases, ticket) != CV_LEASE_NONE;
  if (!is_leased && !cv_broker_question_is_new(campaign, ticket->worker, pending.question)) {
    return CV_OK;
  }
  enum cv_pays pays = cv_broker_campaign_can_pay(broker, campaign, ticket->worker, 1);
  if (pays == CV_PAYS_NEVER) {
    *ret_verdict = cv_objection_make(ret_objection, CV_REFUSED_EPSILON, CV_LIFETIME_SPENT);
  }
  if (pays != CV_PAYS || !two->has_key || two->docket.count >= CV_DOCKET_MAX ||
      !cv_broker_campaign_has_room(broker, campaign, &conn->identity, ticket->worker, ticket->slot, pending.question)) {
    return CV_OK;
  }
  enum cv_err err = cv_sharing_prepare(broker, campaign, &pending);
  if (err != CV_OK) {
    return err == CV_ERR_LIMIT ? CV_OK : err;
  }
  bool fits = token->share->leader_bytes == two->prio.leader_bytes;
  if (!fits || !verify(two, token->share, &pending)) {
    *ret_verdict = cv_objection_make(ret_objection, CV_REFUSED_VALUE, fits ? NO_ELEMENT : WRONG_LENGTH);
    return CV_OK;
  }
  *ret_verdict = CV_VERDICT_NONE;
  err = wait(broker, conn, campaign, ticket, &pending);
  explicit_bzero(&pending, sizeof(pending));
  return err;
}

/* ---- verdicts ---- */

/* Acknowledges the token to the connection that sent it, if that is still there. */
static enum cv_err tell(struct cv_broker *broker, const struct cv_docket_token *token, enum cv_verdict verdict,
                        const char *why) {
  if (token->conn == NULL) {
    return CV_OK;
  }
  struct cv_broker_outbox *out = &token->conn->workers->gather;
  struct cv_crowd_ack *ack = CV_ARRAY_PUSH(out->frame.ack, out->frame.acks, out->acks_cap);
  if (ack == NULL) {
    return CV_ERR_NOMEM;
  }
  *ack = (struct cv_crowd_ack){.verdict = verdict, .why = why};
  memcpy(ack->ticket, token->ticket, sizeof(ack->ticket));
  broker->said = true;
  return CV_OK;
}

static enum cv_err accept(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                          const struct cv_docket_token *token) {
  const struct cv_split_token *sent = &token->sent.token;
  const struct cv_booking booking = booking_of(campaign, token);
  struct cv_chunk *places;
  /* Every chunk exists since the token arrived: the tables cannot be full. */
  CV_TRY(cv_booking_take(broker, campaign, &booking, &places));
  CV_TRY(cv_chunks_set(&campaign->places, token->place, &places));
  const struct cv_entry entry = {.index = token->place,
                                 .worker = sent->worker,
                                 .question = token->question,
                                 .arm = sent->arm,
                                 .slot = sent->slot,
                                 .shown = 1};
  cv_booking_count(broker, campaign, &entry);
  cv_split_chain(&campaign->arm[sent->arm].chain, sent, broker->config.digest);
  int64_t value = (int64_t)cv_field_mul(token->output, cv_split_scale(campaign->spec.score_bits));
  if (token->conn != NULL) {
    cv_broker_workers_reward(token->conn->workers);
  }
  CV_TRY(tell(broker, token, CV_VERDICT_ACCEPTED, NULL));
  return cv_epoch_add(broker, campaign, &sent->arm, 1, &value);
}

/* Its proof fails, or its seal does not open: the slot is used up, so that a worker cannot try again and again. */
static enum cv_err spoil(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                         const struct cv_docket_token *token) {
  CV_TRY(cv_booking_spoil(broker, campaign, token->sent.token.worker, token->sent.token.slot, token->question));
  campaign->two->spoiled++;
  broker->figures.refused++;
  cv_refusals_add(&broker->figures.refusals, CV_REFUSED_VALUE);
  cv_broker_note_refused(broker, token->conn == NULL ? NULL : token->conn->who, campaign, CV_REFUSED_VALUE,
                         ": token refused: %s", NO_PROOF);
  return tell(broker, token, CV_VERDICT_REFUSED, NO_PROOF);
}

static enum cv_err turn_down(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                             const struct cv_docket_token *token, enum cv_share_answer answer) {
  if (answer == CV_ANSWER_PROOF) {
    return spoil(broker, campaign, token);
  }
  if (answer == CV_ANSWER_PLACE) {
    cv_broker_note(broker, NULL, campaign, ": the co-broker has no free place %llu of arm %u, which is free here",
                   (unsigned long long)token->sent.token.place, token->sent.token.arm + 1);
  }
  if (answer == CV_ANSWER_SESSION) {
    cv_broker_note(broker, token->conn == NULL ? NULL : token->conn->who, campaign, ": token not counted: %s",
                   NO_SESSION);
  }
  broker->figures.expired++;
  if (answer == CV_ANSWER_WORKER) { /* it may have arrived again: it is turned away in its turn */
    CV_TRY(cv_two_spend(campaign->two, token->sent.token.worker));
  }
  return tell(broker, token, CV_VERDICT_EXPIRED, NULL);
}

/* The place can be assigned again. If the token came late, others have it, or it is in its turn. */
static enum cv_err give_back(struct cv_broker_campaign *campaign, const struct cv_docket_token *token) {
  uint32_t arm = token->sent.token.arm;
  return token->has_place ? cv_arm_return_place(campaign, arm, token->position) : CV_OK;
}

static enum cv_err judge(struct cv_broker *broker, struct cv_broker_campaign *campaign, struct cv_docket_token *token,
                         enum cv_share_answer answer) {
  cv_docket_release(&campaign->two->docket, token);
  if (token->has_slot) {
    cv_offers_clear(&campaign->offered, token->payer);
    cv_broker_question_end(campaign, token->sent.token.worker, token->question);
  }
  enum cv_err err = answer == CV_ANSWER_ACCEPTED ? accept(broker, campaign, token) : give_back(campaign, token);
  err = err == CV_OK && answer != CV_ANSWER_ACCEPTED ? turn_down(broker, campaign, token, answer) : err;
  owe(token, NULL);
  return err;
}

enum cv_err cv_sharing_judge(struct cv_broker *broker, struct cv_broker_campaign *campaign, const uint8_t *answer) {
  struct cv_broker_two *two = campaign->two;
  const struct cv_docket_batch *batch = two->docket.first;
  for (uint32_t i = 0; i < batch->tokens; i++) {
    CV_TRY(judge(broker, campaign, batch->token[i], (enum cv_share_answer)answer[i]));
  }
  cv_docket_drop_first(&two->docket);
  two->changed = true;
  campaign->active_ms = broker->now_ms;
  broker->changed = broker->said = true;
  return CV_OK;
}

void cv_sharing_abandon(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  struct cv_docket_token *token = campaign->two == NULL ? NULL : campaign->two->docket.by_place;
  for (; token != NULL && !broker->failed; token = token->by_place.next) {
    broker->figures.expired++;
    broker->failed = tell(broker, token, CV_VERDICT_EXPIRED, NULL) != CV_OK;
    owe(token, NULL);
  }
}
