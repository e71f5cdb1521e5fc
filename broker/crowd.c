/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers and gateways. A worker arrives and waits; when its connection has credit it gets a place and a slot, both
 * under a lease; what it answers is counted (token.c). The acknowledgement, and whatever is assigned next, leave
 * together after the commit.
 */
#include <stdlib.h>
#include <string.h>

#include "broker/state.h"

enum { ARRIVE_LATER_MS = 1000, ROOM_LATER_MS = 10000, WISH_LATER_MS = 20 };
static const uint32_t NONE = CV_LEASE_NONE;

/* Tells one worker why it gets nothing; runs of the same answer share a message. `why` is a literal. */
static enum cv_err push_backoff(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t worker,
                                uint32_t delay_ms, uint64_t campaign, const char *why) {
  enum { RUN = 64, LAST = 8 /* that may go on: several campaigns take turns */ };
  struct cv_crowd_out *out = &conn->gather;
  struct cv_backoff *last = NULL;
  for (size_t i = out->frame.backoffs; last == NULL && i-- > 0 && i + LAST >= out->frame.backoffs;) {
    struct cv_backoff *each = &out->frame.backoff[i];
    last = each->why == why && each->campaign == campaign && each->workers < RUN ? each : NULL;
  }
  if (last == NULL) {
    uint64_t *workers = calloc(RUN, sizeof(*workers));
    last = workers == NULL ? NULL : CV_CROWD_PUSH(out, backoff, backoffs, backoffs_cap);
    if (last == NULL) {
      free(workers);
      return CV_ERR_NOMEM;
    }
    *last = (struct cv_backoff){.worker = workers, .delay_ms = delay_ms, .why = why, .campaign = campaign};
  }
  ((uint64_t *)(uintptr_t)last->worker)[last->workers++] = worker;
  conn->gathered++;
  broker->said = true;
  return CV_OK;
}

void cv_crowd_conn_fini(struct cv_broker_conn *conn) {
  for (uint32_t i = 0; i < conn->dealings; i++) {
    free(conn->dealing[i].held);
  }
  free(conn->dealing);
  free(conn->waiting);
  free(conn->lease);
  cv_crowd_out_fini(&conn->gather);
  cv_crowd_out_fini(&conn->ready);
}

/* ---- arrivals ---- */

static enum cv_err wait_in_line(struct cv_broker *broker, struct cv_broker_conn *conn, struct cv_waiting who) {
  if (conn->waiting_count == broker->config.limits.queue) {
    return push_backoff(broker, conn, who.worker, ARRIVE_LATER_MS, 0,
                        "too many workers of this connection are waiting");
  }
  if (conn->waiting_count == conn->waiting_cap) {
    uint32_t cap = conn->waiting_cap == 0 ? 64 : conn->waiting_cap * 2;
    struct cv_waiting *grown = malloc(cap * sizeof(*grown));
    if (grown == NULL) {
      return CV_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < conn->waiting_count; i++) {
      grown[i] = conn->waiting[(conn->waiting_head + i) % conn->waiting_cap];
    }
    free(conn->waiting);
    conn->waiting = grown;
    conn->waiting_cap = cap;
    conn->waiting_head = 0;
  }
  conn->waiting[(conn->waiting_head + conn->waiting_count++) % conn->waiting_cap] = who;
  return CV_OK;
}

static enum cv_err on_arrive(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_arrive *arrive,
                             struct cv_why *why) {
  if (arrive->credit > 0) {
    conn->credit = arrive->credit < CV_CREDIT_MAX ? arrive->credit : CV_CREDIT_MAX;
  }
  broker->said = true;
  for (size_t i = 0; i < arrive->workers; i++) {
    if (!cv_identity_vouches_for(&conn->identity, arrive->worker[i])) {
      return cv_fail(why, CV_ERR_DENIED, "worker %llu is outside the certificate's range %s",
                     (unsigned long long)arrive->worker[i], conn->identity.name);
    }
    const struct cv_waiting who = {.worker = arrive->worker[i],
                                   .wish = arrive->wish == NULL ? CV_WISH_NONE : arrive->wish[i]};
    CV_TRY(wait_in_line(broker, conn, who));
  }
  return CV_OK;
}

/* ---- assignments ---- */

/* Places of one arm that this connection may hold. */
static uint32_t share(const struct cv_broker *broker, const struct cv_broker_conn *conn, const struct cv_arm *arm) {
  uint32_t fair = arm->want / (broker->crowd_conns > 0 ? broker->crowd_conns : 1);
  uint32_t most = (fair > CV_SHARE_MIN ? fair : CV_SHARE_MIN) >> conn->penalty;
  return most > 0 ? most : 1;
}

static bool has_place(const struct cv_broker *broker, const struct cv_broker_conn *conn,
                      const struct cv_campaign *campaign, const struct cv_dealing *dealing, uint32_t arm) {
  return cv_arm_free_places(&campaign->arm[arm]) > 0 && dealing->held[arm] < share(broker, conn, &campaign->arm[arm]);
}

/* The next arm that has a place for this connection: in turn, or the one that the worker has come for, or of a paid
 * worker its own; NONE if there is none. */
static uint32_t pick_arm(const struct cv_broker *broker, const struct cv_broker_conn *conn,
                         struct cv_campaign *campaign, const struct cv_dealing *dealing, const struct cv_seat *seat) {
  uint32_t arms = campaign->spec.arms;
  if (seat != NULL) {
    return has_place(broker, conn, campaign, dealing, seat->arm) ? seat->arm : NONE;
  }
  if (conn->wish != CV_WISH_NONE) {
    return conn->wish < arms && has_place(broker, conn, campaign, dealing, conn->wish) ? conn->wish : NONE;
  }
  for (uint32_t i = 0; campaign->free_places > 0 && i < arms; i++) {
    uint32_t arm = campaign->cursor;
    campaign->cursor = arm + 1 == arms ? 0 : arm + 1;
    if (has_place(broker, conn, campaign, dealing, arm)) {
      return arm;
    }
  }
  return NONE;
}

/* A place of that arm; NONE if there is none. */
static uint32_t take_place(const struct cv_broker *broker, const struct cv_broker_conn *conn,
                           struct cv_campaign *campaign, const struct cv_dealing *dealing, const struct cv_seat *seat,
                           uint32_t *ret_position) {
  uint32_t arm;
  do { /* an arm whose places turn out to be filled has none left, and is not picked again */
    arm = pick_arm(broker, conn, campaign, dealing, seat);
  } while (arm != NONE && !cv_arm_take_place(campaign, arm, ret_position));
  return arm;
}

static enum cv_err tell_terms(struct cv_broker_conn *conn, const struct cv_campaign *campaign) {
  struct cv_terms *terms = CV_CROWD_PUSH(&conn->gather, campaign, campaigns, campaigns_cap);
  if (terms == NULL) {
    return CV_ERR_NOMEM;
  }
  *terms = (struct cv_terms){
      .id = campaign->id,
      .privatizer = campaign->spec.privatizer,
      .mechanism = campaign->spec.mechanism,
      .epsilon_micro = campaign->spec.epsilon_micro,
      .tokens_per_worker = campaign->spec.tokens_per_worker,
      .arms = campaign->spec.arms,
  };
  memcpy(terms->name, campaign->spec.name, sizeof(terms->name));
  memcpy(terms->requester, campaign->requester, sizeof(terms->requester));
  return CV_OK;
}

static enum cv_err give(struct cv_broker *broker, struct cv_broker_conn *conn, struct cv_campaign *campaign,
                        struct cv_dealing *dealing, const struct cv_lease *lease, uint64_t wall_ms) {
  const struct cv_arm *arm = &campaign->arm[lease->arm];
  uint32_t shown[CV_VALUES_MAX];
  uint32_t arms = cv_shown_list(campaign, lease->arm, shown);
  uint32_t *many = arms == 1 ? NULL : malloc(arms * sizeof(*many));
  struct cv_assign *assign =
      arms > 1 && many == NULL ? NULL : CV_CROWD_PUSH(&conn->gather, assign, assigns, assigns_cap);
  if (assign == NULL) {
    free(many);
    return CV_ERR_NOMEM;
  }
  uint32_t at = cv_lease_link(conn, lease);
  dealing->held[lease->arm]++;
  const struct cv_ticket ticket = {
      .campaign = campaign->id,
      .plan = (uint32_t)lease->plan,
      .arm = lease->arm,
      .position = lease->position,
      .worker = lease->worker,
      .slot = lease->slot,
      .lease = at,
      .expiry = (uint32_t)((wall_ms + broker->config.limits.lease_ms) / 1000),
  };
  assign->campaign = campaign->id;
  assign->worker = lease->worker;
  assign->arms = arms;
  if (arms == 1) {
    assign->arm.one = lease->arm;
  } else {
    memcpy(many, shown, arms * sizeof(*many));
    assign->arm.many = many;
  }
  assign->place = arm->first + lease->position;
  assign->round = arm->round + lease->position;
  assign->switched = arm->switched && lease->position == 0;
  broker->said = true;
  return cv_ticket_seal(&ticket, &broker->config.tagger, assign->ticket);
}

/* What became of one worker that waited. */
enum fate {
  FATE_ASSIGNED,
  FATE_WAITS,     /* for a place: nobody behind it gets one either */
  FATE_ELSEWHERE, /* there are places, but not of the arm that it has come for */
  FATE_PASSED,    /* for being hired: others are at the moment, and may stand behind it */
  FATE_BUSY,      /* for its own open assignment: others may go first */
  FATE_LATER,     /* the tables have no room for what it would give */
  FATE_NEVER,
  FATE_DECLINED,
};

/* Who the worker is in the campaign and which of its tokens is next; FATE_WAITS if a place is all that is missing. */
static enum fate find_payer(struct cv_broker *broker, const struct cv_broker_conn *conn, struct cv_campaign *campaign,
                            uint64_t worker, struct cv_seat **ret_seat, uint32_t *ret_slot, const char **ret_why) {
  struct cv_seat *seat = NULL;
  if (cv_payroll_is_kept(&campaign->payroll)) {
    seat = cv_payroll_find(&campaign->payroll, worker);
    if (seat == NULL) {
      *ret_why = "this worker is not among those who can be hired";
      return FATE_NEVER;
    }
  }
  bool used_up;
  uint32_t slots = campaign->spec.tokens_per_worker;
  uint32_t slot = (uint32_t)cv_offers_find(&campaign->offered, &campaign->payers,
                                           cv_campaign_payer_bit(campaign, worker, 0), slots, &used_up);
  if (slot == slots) {
    *ret_why = "all tokens of this worker have been given";
    return used_up ? FATE_NEVER : FATE_BUSY;
  }
  if (!cv_campaign_can_pay(broker, campaign, worker, campaign->shown_most)) {
    *ret_why = CV_LIFETIME_SPENT;
    return FATE_NEVER;
  }
  if (!cv_campaign_has_room(broker, campaign, &conn->identity, worker, slot)) {
    return FATE_LATER;
  }
  *ret_seat = seat;
  *ret_slot = slot;
  return FATE_WAITS;
}

static enum cv_err try_campaign(struct cv_broker *broker, struct cv_broker_conn *conn, struct cv_campaign *campaign,
                                uint64_t worker, uint64_t now_ms, uint64_t wall_ms, enum fate *ret_fate,
                                const char **ret_why) {
  struct cv_dealing *dealing;
  enum cv_err err = cv_dealing_make(broker, conn, campaign, &dealing);
  if (err != CV_OK) {
    *ret_fate = FATE_WAITS; /* for an older campaign to end */
    return err == CV_ERR_LIMIT ? CV_OK : err;
  }
  if (dealing->declined) {
    *ret_fate = FATE_DECLINED;
    return CV_OK;
  }
  struct cv_seat *seat = NULL;
  uint32_t slot = NONE;
  *ret_fate = find_payer(broker, conn, campaign, worker, &seat, &slot, ret_why);
  if (*ret_fate != FATE_WAITS) {
    return CV_OK;
  }
  if (!dealing->told) {
    CV_TRY(tell_terms(conn, campaign));
    dealing->told = true;
    broker->said = true;
  }
  CV_TRY(cv_lease_room(conn));
  uint32_t position, arm = take_place(broker, conn, campaign, dealing, seat, &position);
  if (arm == NONE) {
    *ret_fate = campaign->free_places == 0   ? FATE_WAITS
                : seat != NULL               ? FATE_PASSED
                : conn->wish != CV_WISH_NONE ? FATE_ELSEWHERE
                                             : FATE_WAITS;
    return CV_OK;
  }
  CV_TRY(cv_offers_set(&campaign->offered, cv_campaign_payer_bit(campaign, worker, slot)));
  *ret_fate = FATE_ASSIGNED;
  const struct cv_lease lease = {
      .worker = worker,
      .plan = campaign->arm[arm].plan,
      .deadline_ms = now_ms + broker->config.limits.lease_ms,
      .again_ms = now_ms + (broker->config.limits.lease_ms / CV_AGAIN >> conn->penalty),
      .campaign = campaign->id,
      .arm = arm,
      .position = position,
      .slot = slot,
  };
  return give(broker, conn, campaign, dealing, &lease, wall_ms);
}

/* Nothing for this worker in any campaign, ever: it is told of each, or it would come again for another one. */
static enum cv_err send_away(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t worker, uint64_t now_ms,
                             uint64_t wall_ms) {
  for (struct cv_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    enum fate fate = FATE_DECLINED;
    const char *why = NULL;
    if (campaign->phase == CV_PHASE_RUNNING) {
      CV_TRY(try_campaign(broker, conn, campaign, worker, now_ms, wall_ms, &fate, &why));
    }
    if (fate == FATE_NEVER) {
      CV_TRY(push_backoff(broker, conn, worker, 0, campaign->id, why));
    }
  }
  return CV_OK;
}

/* Nothing for this worker now, though there would be a place. */
static enum cv_err put_off(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t worker) {
  static const char why[] = "the tables of workers have no room for more of this certificate";
  cv_refusals_add(&broker->figures.refusals, CV_REFUSED_LIMIT);
  cv_broker_note(broker, conn->who, "told workers to come again: %s", why);
  return push_backoff(broker, conn, worker, ROOM_LATER_MS, 0, why);
}

static enum cv_err assign_one(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t worker, uint64_t now_ms,
                              uint64_t wall_ms, enum fate *ret_fate) {
  enum fate fate = FATE_NEVER;
  bool never = false, later = false, waits = false, busy = false, passed = false, elsewhere = false;
  for (struct cv_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    if (campaign->phase != CV_PHASE_RUNNING) {
      waits = waits || campaign->phase == CV_PHASE_OPENING;
      continue;
    }
    const char *reason = NULL;
    CV_TRY(try_campaign(broker, conn, campaign, worker, now_ms, wall_ms, &fate, &reason));
    if (fate == FATE_ASSIGNED) {
      *ret_fate = fate;
      return CV_OK;
    }
    waits = waits || fate == FATE_WAITS;
    passed = passed || fate == FATE_PASSED;
    elsewhere = elsewhere || fate == FATE_ELSEWHERE;
    busy = busy || fate == FATE_BUSY;
    later = later || fate == FATE_LATER;
    never = never || fate == FATE_NEVER;
  }
  *ret_fate = passed      ? FATE_PASSED
              : elsewhere ? FATE_ELSEWHERE
              : waits     ? FATE_WAITS
              : busy      ? FATE_BUSY
              : later     ? FATE_LATER
              : never     ? FATE_NEVER
                          : FATE_WAITS;
  if (*ret_fate == FATE_ELSEWHERE) {
    return push_backoff(broker, conn, worker, WISH_LATER_MS, 0, "the arm that it has come for has no place now");
  }
  return *ret_fate == FATE_NEVER   ? send_away(broker, conn, worker, now_ms, wall_ms)
         : *ret_fate == FATE_LATER ? put_off(broker, conn, worker)
                                   : CV_OK;
}

/* One turn of a connection: its queue once through, as far as credit, places and its share of answers in vain go. */
static enum cv_err assign_conn(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t now_ms,
                               uint64_t wall_ms) {
  uint32_t waiting = conn->waiting_count, busy = 0, passed = 0;
  size_t away = 0, share = cv_broker_share(broker);
  for (uint32_t i = 0; i < waiting && busy < CV_BUSY_MAX && passed < CV_PASSED_MAX && conn->outstanding < conn->credit;
       i++) {
    const struct cv_waiting who = conn->waiting[conn->waiting_head];
    enum fate fate;
    if (away == share) {
      broker->unserved = true;
      break;
    }
    conn->wish = who.wish;
    CV_TRY(assign_one(broker, conn, who.worker, now_ms, wall_ms, &fate));
    if (fate == FATE_WAITS) {
      break;
    }
    conn->waiting_head = (conn->waiting_head + 1) % conn->waiting_cap;
    conn->waiting_count--;
    away += fate == FATE_NEVER || fate == FATE_LATER || fate == FATE_ELSEWHERE;
    if (fate == FATE_BUSY || fate == FATE_PASSED) {
      busy += fate == FATE_BUSY;
      passed += fate == FATE_PASSED;
      CV_TRY(wait_in_line(broker, conn, who));
    }
  }
  return CV_OK;
}

static bool is_running(const struct cv_broker *broker) {
  for (const struct cv_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    if (campaign->phase == CV_PHASE_RUNNING) {
      return true;
    }
  }
  return false;
}

enum cv_err cv_crowd_assign_all(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms) {
  broker->unserved = false;
  if (broker->draining || !is_running(broker)) {
    return CV_OK;
  }
  /* Another connection comes first each time. */
  struct cv_broker_conn *first =
      broker->fair != NULL && broker->fair->next != NULL ? broker->fair->next : broker->conns;
  struct cv_broker_conn *conn = first;
  while (conn != NULL) {
    if (conn->credit > 0 && !conn->close_due) {
      CV_TRY(assign_conn(broker, conn, now_ms, wall_ms));
    }
    conn = conn->next != NULL ? conn->next : broker->conns;
    if (conn == first) {
      break;
    }
  }
  broker->fair = first;
  return CV_OK;
}

enum cv_err cv_crowd_tell_done(struct cv_broker *broker, const struct cv_campaign *campaign) {
  for (struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    struct cv_dealing *dealing = cv_dealing_find(conn, campaign->id);
    if (dealing == NULL || !dealing->told || dealing->done_told) {
      continue;
    }
    uint64_t *done = CV_CROWD_PUSH(&conn->gather, done, dones, dones_cap);
    if (done == NULL) {
      return CV_ERR_NOMEM;
    }
    *done = campaign->id;
    dealing->done_told = true;
    broker->said = true;
  }
  return CV_OK;
}

/* Nothing is promised by a worker that does not answer: its place goes to whoever comes next. */
static enum cv_err on_decline_one(struct cv_broker *broker, struct cv_broker_conn *conn,
                                  const struct cv_decline *decline) {
  struct cv_ticket ticket;
  enum cv_err err = cv_ticket_open(decline->ticket, &broker->config.tagger, &ticket);
  if (err == CV_ERR_NOMEM) {
    return err;
  }
  conn->gathered++; /* not for ever in one turn */
  broker->said = true;
  if (err != CV_OK) {
    cv_refusals_add(&broker->figures.refusals, CV_REFUSED_TICKET);
    cv_broker_note(broker, conn->who, "declined what it was not asked: the ticket is not one of this broker's");
    return CV_OK;
  }
  cv_broker_note(broker, conn->who, "declined an assignment of campaign %u: %s", ticket.campaign,
                 decline->why != NULL ? decline->why : "no reason given");
  cv_lease_end_of(broker, conn, &ticket);
  return CV_OK;
}

static void on_decline(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_decline *decline) {
  struct cv_dealing *dealing =
      decline->campaign > UINT32_MAX ? NULL : cv_dealing_find(conn, (uint32_t)decline->campaign);
  if (dealing == NULL || dealing->declined) {
    conn->gathered++;
    broker->said = true;
    return;
  }
  dealing->declined = true;
  broker->said = true; /* its places may go to others */
  cv_broker_note(broker, conn->who, "declined campaign %u: %s", dealing->campaign,
                 decline->why != NULL ? decline->why : "no reason given");
  for (uint32_t at = conn->lease_first; at != NONE;) {
    uint32_t after = conn->lease[at].after;
    if (conn->lease[at].campaign == dealing->campaign) {
      cv_lease_end(broker, conn, at);
    }
    at = after;
  }
}

static enum cv_err on_frame(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_crowd_frame *frame,
                            struct cv_why *why) {
  if (frame->goodbye != NULL) {
    cv_broker_note(broker, conn->who, "it closes: %s", frame->goodbye);
  }
  CV_TRY(cv_broker_greet(broker, conn, &frame->hello, why));
  if (!conn->hello_sent) {
    conn->gather.frame.hello = cv_broker_hello(conn);
  }
  if (frame->assigns + frame->acks + frame->backoffs + frame->campaigns + frame->dones > 0) {
    return cv_fail(why, CV_ERR_DENIED, "a message that only a broker may send");
  }
  /* What is said in many messages, or in a frame without any, is answered no more often than what is said in one. */
  size_t messages = frame->arrives + frame->tokens + frame->declines;
  conn->gathered += frame->arrives > 1 ? frame->arrives - 1 : messages == 0;
  broker->said = broker->said || conn->gathered > 0;
  for (size_t i = 0; i < frame->declines; i++) {
    if (frame->decline[i].has_ticket) {
      CV_TRY(on_decline_one(broker, conn, &frame->decline[i]));
    } else {
      on_decline(broker, conn, &frame->decline[i]);
    }
  }
  for (size_t i = 0; i < frame->tokens; i++) {
    CV_TRY(cv_token_count(broker, conn, &frame->token[i]));
  }
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

enum cv_err cv_broker_on_crowd(struct cv_broker *broker, struct cv_broker_conn *conn,
                               const struct cv_crowd_frame *frame, uint64_t now_ms, uint64_t wall_ms,
                               struct cv_why *why) {
  CV_TRY(cv_broker_unless_failed(broker, CV_OK, why));
  broker->now_ms = now_ms;
  broker->wall_ms = wall_ms;
  return cv_broker_unless_failed(broker, on_frame(broker, conn, frame, why), why);
}
