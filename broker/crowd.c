/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers and gateways. A worker arrives and waits; when its connection has credit it gets a place and a slot, both
 * under a lease; its token is counted if the ticket is genuine and place and slot are free. The acknowledgement, and
 * whatever is assigned next, leave together after the commit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/state.h"

enum { DEALINGS_MAX = 256, ARRIVE_LATER_MS = 1000 };
static const uint32_t NONE = CV_LEASE_NONE;

/* ---- outputs: arrays that grow and are reused ---- */

static void *grow(void *array, size_t count, size_t *cap, size_t size) {
  if (count < *cap) {
    return array;
  }
  size_t more = *cap == 0 ? 32 : *cap * 2;
  void *grown = realloc(array, more * size);
  if (grown != NULL) {
    *cap = more;
  }
  return grown;
}

#define PUSH(out, array, count, cap)                                                                      \
  __extension__({                                                                                         \
    void *grown = grow((out)->frame.array, (out)->frame.count, &(out)->cap, sizeof(*(out)->frame.array)); \
    if (grown != NULL) {                                                                                  \
      (out)->frame.array = grown;                                                                         \
    }                                                                                                     \
    grown == NULL ? NULL : &(out)->frame.array[(out)->frame.count++];                                     \
  })

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
    last = workers == NULL ? NULL : PUSH(out, backoff, backoffs, backoffs_cap);
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

/* ---- dealings of a connection with a campaign ---- */

static struct cv_dealing *find_dealing(struct cv_broker_conn *conn, uint32_t campaign) {
  for (uint32_t i = 0; i < conn->dealings; i++) {
    if (conn->dealing[i].campaign == campaign) {
      return &conn->dealing[i];
    }
  }
  return NULL;
}

/* A place for one more: that of a campaign which is over for this connection, or a new one; or CV_ERR_LIMIT. */
static enum cv_err dealing_room(struct cv_broker *broker, struct cv_broker_conn *conn, struct cv_dealing **ret) {
  for (uint32_t i = 0; i < conn->dealings; i++) {
    const struct cv_campaign *old = cv_campaign_find(broker, conn->dealing[i].campaign);
    if (old == NULL || (old->phase == CV_PHASE_ENDED && (conn->dealing[i].done_told || !conn->dealing[i].told))) {
      free(conn->dealing[i].held);
      *ret = &conn->dealing[i];
      return CV_OK;
    }
  }
  if (conn->dealings == DEALINGS_MAX) {
    return CV_ERR_LIMIT;
  }
  if (conn->dealings == conn->dealings_cap) {
    uint32_t cap = conn->dealings_cap == 0 ? 4 : conn->dealings_cap * 2;
    struct cv_dealing *grown = realloc(conn->dealing, cap * sizeof(*grown));
    if (grown == NULL) {
      return CV_ERR_NOMEM;
    }
    conn->dealing = grown;
    conn->dealings_cap = cap;
  }
  *ret = &conn->dealing[conn->dealings++];
  return CV_OK;
}

/* The dealing with this campaign, made if need be; or CV_ERR_LIMIT. */
static enum cv_err make_dealing(struct cv_broker *broker, struct cv_broker_conn *conn,
                                const struct cv_campaign *campaign, struct cv_dealing **ret) {
  struct cv_dealing *dealing = find_dealing(conn, campaign->id);
  if (dealing == NULL) {
    uint32_t *held = calloc(campaign->spec.arms, sizeof(*held));
    enum cv_err err = held == NULL ? CV_ERR_NOMEM : dealing_room(broker, conn, &dealing);
    if (err != CV_OK) {
      free(held);
      return err;
    }
    *dealing = (struct cv_dealing){.campaign = campaign->id, .held = held};
  }
  *ret = dealing;
  return CV_OK;
}

/* ---- leases ---- */

static uint64_t payer_bit(const struct cv_campaign *campaign, uint64_t worker, uint32_t slot) {
  return worker * campaign->spec.tokens_per_worker + slot;
}

static void give_place_back(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_lease *lease) {
  const struct cv_arm *arm = &campaign->arm[lease->arm];
  bool is_open = arm->plan == lease->plan &&
                 !cv_chunks_bit(&campaign->places, cv_epoch_place_bit(lease->arm, arm->first + lease->position));
  broker->failed = (is_open && cv_arm_return_place(campaign, lease->arm, lease->position) != CV_OK) || broker->failed;
}

/* The lease is over; its place goes back if nobody has filled it. */
static void lease_end(struct cv_broker *broker, struct cv_broker_conn *conn, uint32_t at, bool give_back) {
  struct cv_lease lease = conn->lease[at];
  cv_lease_unlink(conn, at);
  struct cv_dealing *dealing = find_dealing(conn, lease.campaign);
  if (dealing != NULL && dealing->held[lease.arm] > 0) {
    dealing->held[lease.arm]--;
  }
  struct cv_campaign *campaign = cv_campaign_find(broker, lease.campaign);
  if (campaign == NULL || campaign->arm == NULL) {
    return;
  }
  cv_chunks_clear(&campaign->offered, payer_bit(campaign, lease.worker, lease.slot));
  if (give_back && !lease.again) {
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

void cv_crowd_expire(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t now_ms) {
  bool silent = false;
  while (conn->lease_first != NONE && conn->lease[conn->lease_first].deadline_ms <= now_ms) {
    lease_end(broker, conn, conn->lease_first, true);
    silent = true;
  }
  if (silent) {
    conn->penalty += conn->penalty < CV_PENALTY_MAX;
    conn->answered = 0;
  }
  offer_again(broker, conn, now_ms);
}

/* As many answers as its share double that share. */
static void reward(struct cv_broker_conn *conn) {
  if (conn->penalty > 0 && ++conn->answered >= (uint32_t)CV_SHARE_MIN >> conn->penalty) {
    conn->penalty--;
    conn->answered = 0;
  }
}

void cv_crowd_return_all(struct cv_broker *broker, struct cv_broker_conn *conn) {
  while (conn->lease_first != NONE) {
    lease_end(broker, conn, conn->lease_first, true);
  }
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

static enum cv_err wait_in_line(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t worker) {
  if (conn->waiting_count == broker->config.limits.queue) {
    return push_backoff(broker, conn, worker, ARRIVE_LATER_MS, 0, "too many workers of this connection are waiting");
  }
  if (conn->waiting_count == conn->waiting_cap) {
    uint32_t cap = conn->waiting_cap == 0 ? 64 : conn->waiting_cap * 2;
    uint64_t *grown = malloc(cap * sizeof(*grown));
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
  conn->waiting[(conn->waiting_head + conn->waiting_count++) % conn->waiting_cap] = worker;
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
    CV_TRY(wait_in_line(broker, conn, arrive->worker[i]));
  }
  return CV_OK;
}

/* ---- assignments ---- */

/* A slot that is neither used nor offered; NONE if there is none. A paid worker may have thousands: its seat remembers
 * how far they are used up. */
static uint32_t free_slot(struct cv_campaign *campaign, uint64_t worker, struct cv_seat *seat, bool *ret_used_up) {
  bool used_up = true;
  for (uint32_t slot = seat == NULL ? 0 : seat->slot; slot < campaign->spec.tokens_per_worker; slot++) {
    uint64_t bit = payer_bit(campaign, worker, slot);
    if (cv_chunks_bit(&campaign->payers, bit)) {
      if (seat != NULL && seat->slot == slot) {
        seat->slot++;
      }
      continue;
    }
    used_up = false;
    if (!cv_chunks_bit(&campaign->offered, bit)) {
      return slot;
    }
  }
  *ret_used_up = used_up;
  return NONE;
}

static const char *const LIFETIME_SPENT = "this worker's lifetime epsilon is spent";

static bool can_pay(struct cv_broker *broker, const struct cv_campaign *campaign, uint64_t worker, uint32_t shown) {
  return cv_ledger_add(cv_accounts_spent(&broker->accounts, worker), cv_campaign_charge(campaign, shown)) <=
         broker->config.limits.worker_epsilon_micro;
}

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

/* The next arm, in turn, that has a place for this connection, of a paid worker its own; NONE if there is none. */
static uint32_t pick_arm(const struct cv_broker *broker, const struct cv_broker_conn *conn,
                         struct cv_campaign *campaign, const struct cv_dealing *dealing, const struct cv_seat *seat) {
  uint32_t arms = campaign->spec.arms;
  if (seat != NULL) {
    return has_place(broker, conn, campaign, dealing, seat->arm) ? seat->arm : NONE;
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

static enum cv_err tell_terms(struct cv_broker_conn *conn, const struct cv_campaign *campaign) {
  struct cv_terms *terms = PUSH(&conn->gather, campaign, campaigns, campaigns_cap);
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
  return CV_OK;
}

static enum cv_err give(struct cv_broker *broker, struct cv_broker_conn *conn, struct cv_campaign *campaign,
                        struct cv_dealing *dealing, const struct cv_lease *lease, uint64_t wall_ms) {
  const struct cv_arm *arm = &campaign->arm[lease->arm];
  uint32_t shown[CV_VALUES_MAX];
  uint32_t arms = cv_shown_list(campaign, lease->arm, shown);
  uint32_t *many = arms == 1 ? NULL : malloc(arms * sizeof(*many));
  struct cv_assign *assign = arms > 1 && many == NULL ? NULL : PUSH(&conn->gather, assign, assigns, assigns_cap);
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
  FATE_WAITS,  /* for a place: nobody behind it gets one either */
  FATE_PASSED, /* for being hired: others are at the moment, and may stand behind it */
  FATE_BUSY,   /* for its own open assignment: others may go first */
  FATE_NEVER,
  FATE_DECLINED,
};

/* Room in the tables for what the worker will have given and paid, and the slot taken; or CV_ERR_LIMIT. */
static enum cv_err offer(struct cv_broker *broker, struct cv_campaign *campaign, uint64_t worker, uint32_t slot) {
  struct cv_chunk *chunk;
  uint64_t bit = payer_bit(campaign, worker, slot);
  CV_TRY(cv_chunks_touch(&campaign->payers, bit / CV_CHUNK_BITS, &chunk));
  CV_TRY(cv_chunks_touch(&broker->accounts.cells, worker / CV_CHUNK_CELLS, &chunk));
  return cv_chunks_set(&campaign->offered, bit, &chunk);
}

static enum cv_err try_campaign(struct cv_broker *broker, struct cv_broker_conn *conn, struct cv_campaign *campaign,
                                uint64_t worker, uint64_t now_ms, uint64_t wall_ms, enum fate *ret_fate,
                                const char **ret_why) {
  struct cv_dealing *dealing;
  enum cv_err err = make_dealing(broker, conn, campaign, &dealing);
  if (err != CV_OK) {
    *ret_fate = FATE_WAITS; /* for an older campaign to end */
    return err == CV_ERR_LIMIT ? CV_OK : err;
  }
  if (dealing->declined) {
    *ret_fate = FATE_DECLINED;
    return CV_OK;
  }
  struct cv_seat *seat = NULL;
  if (cv_payroll_is_kept(&campaign->payroll)) {
    seat = cv_payroll_find(&campaign->payroll, worker);
    if (seat == NULL) {
      *ret_fate = FATE_NEVER;
      *ret_why = "this worker is not among those who can be hired";
      return CV_OK;
    }
  }
  bool used_up = false;
  uint32_t slot = free_slot(campaign, worker, seat, &used_up);
  *ret_fate = used_up ? FATE_NEVER : FATE_BUSY;
  *ret_why = "all tokens of this worker have been given";
  if (slot == NONE) {
    return CV_OK;
  }
  *ret_fate = FATE_WAITS;
  if (!can_pay(broker, campaign, worker, campaign->shown_most)) {
    *ret_fate = FATE_NEVER;
    *ret_why = LIFETIME_SPENT;
    return CV_OK;
  }
  if (!dealing->told) {
    CV_TRY(tell_terms(conn, campaign));
    dealing->told = true;
    broker->said = true;
  }
  CV_TRY(cv_lease_room(conn));
  uint32_t position;
  uint32_t arm;
  do { /* an arm whose places turn out to be filled has none left, and is not picked again */
    arm = pick_arm(broker, conn, campaign, dealing, seat);
    if (arm == NONE) {
      *ret_fate = seat != NULL && campaign->free_places > 0 ? FATE_PASSED : FATE_WAITS;
      return CV_OK;
    }
  } while (!cv_arm_take_place(campaign, arm, &position));
  err = offer(broker, campaign, worker, slot);
  if (err == CV_ERR_LIMIT) {
    *ret_fate = FATE_NEVER;
    *ret_why = "the broker's table of workers is full";
    return cv_arm_return_place(campaign, arm, position);
  }
  CV_TRY(err);
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

static enum cv_err assign_one(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t worker, uint64_t now_ms,
                              uint64_t wall_ms, enum fate *ret_fate) {
  enum fate fate = FATE_NEVER;
  bool never = false, waits = false, busy = false, passed = false;
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
    busy = busy || fate == FATE_BUSY;
    never = never || fate == FATE_NEVER;
  }
  *ret_fate = passed ? FATE_PASSED : waits ? FATE_WAITS : busy ? FATE_BUSY : never ? FATE_NEVER : FATE_WAITS;
  return *ret_fate == FATE_NEVER ? send_away(broker, conn, worker, now_ms, wall_ms) : CV_OK;
}

/* One turn of a connection: its queue once through, as far as credit and places go. */
static enum cv_err assign_conn(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t now_ms,
                               uint64_t wall_ms) {
  uint32_t waiting = conn->waiting_count, busy = 0, passed = 0;
  for (uint32_t i = 0; i < waiting && busy < CV_BUSY_MAX && passed < CV_PASSED_MAX && conn->outstanding < conn->credit;
       i++) {
    uint64_t worker = conn->waiting[conn->waiting_head];
    enum fate fate;
    CV_TRY(assign_one(broker, conn, worker, now_ms, wall_ms, &fate));
    if (fate == FATE_WAITS) {
      break;
    }
    conn->waiting_head = (conn->waiting_head + 1) % conn->waiting_cap;
    conn->waiting_count--;
    if (fate == FATE_BUSY || fate == FATE_PASSED) {
      busy += fate == FATE_BUSY;
      passed += fate == FATE_PASSED;
      CV_TRY(wait_in_line(broker, conn, worker));
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
    struct cv_dealing *dealing = find_dealing(conn, campaign->id);
    if (dealing == NULL || !dealing->told || dealing->done_told) {
      continue;
    }
    uint64_t *done = PUSH(&conn->gather, done, dones, dones_cap);
    if (done == NULL) {
      return CV_ERR_NOMEM;
    }
    *done = campaign->id;
    dealing->done_told = true;
    broker->said = true;
  }
  return CV_OK;
}

/* ---- tokens ---- */

/* Why a token is refused: in words, and as what it is counted. */
struct objection {
  const char *why;
  enum cv_refusal kind;
};

static enum cv_verdict refuse(struct objection *ret, enum cv_refusal kind, const char *why) {
  *ret = (struct objection){.why = why, .kind = kind};
  return CV_VERDICT_REFUSED;
}

/* Everything about a token that does not depend on what was counted before. */
static enum cv_verdict check_token(const struct cv_broker_conn *conn, const struct cv_campaign *campaign,
                                   const struct cv_ticket *ticket, const struct cv_token *token,
                                   struct objection *ret) {
  if (!cv_identity_vouches_for(&conn->identity, ticket->worker)) {
    return refuse(ret, CV_REFUSED_WORKER, "the ticket belongs to a worker outside this certificate");
  }
  if (campaign == NULL) {
    return refuse(ret, CV_REFUSED_CAMPAIGN, "the ticket's campaign is unknown");
  }
  if (campaign->shown_most == 1 && token->values != 1) {
    return refuse(ret, CV_REFUSED_VALUE, "expected one value");
  }
  for (size_t i = 0; i < token->values; i++) {
    if (!cv_local_sends(&campaign->privacy.local, token->value[i])) {
      return refuse(ret, CV_REFUSED_VALUE, "the value is out of range");
    }
  }
  return CV_VERDICT_ACCEPTED;
}

static void charge(struct cv_broker *broker, const struct cv_campaign *campaign, struct cv_chunk *chunk,
                   uint64_t worker, uint32_t shown) {
  cv_accounts_charge(chunk, worker, cv_campaign_charge(campaign, shown));
  cv_dirty_chunk(broker, 0, CV_CHUNK_ACCOUNTS, chunk);
}

/* Takes place and slot and charges the worker; CV_ERR_LIMIT, and nothing is taken, if a table is full. */
static enum cv_err take(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_ticket *ticket,
                        uint64_t place, uint32_t shown) {
  struct cv_chunk *account, *payer, *places;
  CV_TRY(cv_chunks_touch(&broker->accounts.cells, ticket->worker / CV_CHUNK_CELLS, &account));
  CV_TRY(cv_chunks_touch(&campaign->places, place / CV_CHUNK_BITS, &places));
  CV_TRY(cv_chunks_set(&campaign->payers, payer_bit(campaign, ticket->worker, ticket->slot), &payer));
  CV_TRY(cv_chunks_set(&campaign->places, place, &places));
  cv_dirty_chunk(broker, campaign->id, CV_CHUNK_PAYERS, payer);
  cv_dirty_chunk(broker, campaign->id, CV_CHUNK_PLACES, places);
  charge(broker, campaign, account, ticket->worker, shown);
  return CV_OK;
}

/* Journal, counts and payment of a token whose place and slot are taken. */
static void book(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_entry *entry) {
  cv_buf_put(&campaign->journal, entry, sizeof(*entry));
  campaign->arm[entry->arm].filled++;
  campaign->tokens++;
  if (cv_payroll_is_kept(&campaign->payroll)) {
    cv_payroll_pay(&campaign->payroll, &campaign->spec, entry->arm, 1);
  }
  broker->totals.tokens++;
  campaign->reserved--;
  campaign->active_ms = broker->now_ms;
  campaign->progressed = true;
  broker->changed = true;
  broker->gathered++;
}

/* The token counts if place and slot are free; then both are taken and the sums grow, in one batch. */
static enum cv_err count_token(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_ticket *ticket,
                               const struct cv_token *token, enum cv_verdict *ret_verdict, struct objection *ret) {
  const struct cv_arm *arm = campaign->arm == NULL ? NULL : &campaign->arm[ticket->arm];
  if (arm != NULL && cv_chunks_bit(&campaign->payers, payer_bit(campaign, ticket->worker, ticket->slot))) {
    *ret_verdict = CV_VERDICT_DUPLICATE;
    return CV_OK;
  }
  *ret_verdict = CV_VERDICT_EXPIRED;
  if (arm == NULL || arm->plan != ticket->plan || ticket->position >= arm->want) {
    return CV_OK;
  }
  uint64_t index = arm->first + ticket->position;
  uint64_t place = cv_epoch_place_bit(ticket->arm, index);
  if (cv_chunks_bit(&campaign->places, place)) { /* another was first; what the place showed may be over */
    return CV_OK;
  }
  uint32_t shown[CV_VALUES_MAX];
  uint32_t n = cv_shown_list(campaign, ticket->arm, shown);
  if (token->values != n) {
    *ret_verdict = refuse(ret, CV_REFUSED_VALUE, "expected one value of each arm assigned");
    return CV_OK;
  }
  if (!can_pay(broker, campaign, ticket->worker, n)) { /* it had several assignments at once */
    *ret_verdict = refuse(ret, CV_REFUSED_EPSILON, LIFETIME_SPENT);
    return CV_OK;
  }
  enum cv_err err = take(broker, campaign, ticket, place, n);
  if (err != CV_OK) {
    return err == CV_ERR_LIMIT ? CV_OK : err;
  }
  const struct cv_entry entry = {
      .index = index, .worker = ticket->worker, .arm = ticket->arm, .slot = ticket->slot, .shown = n};
  book(broker, campaign, &entry);
  *ret_verdict = CV_VERDICT_ACCEPTED;
  return cv_shown_add(broker, campaign, shown, n, token->value);
}

static void end_lease_of(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_ticket *ticket) {
  if (ticket->lease >= conn->leases) {
    return;
  }
  const struct cv_lease *lease = &conn->lease[ticket->lease];
  if (lease->campaign == ticket->campaign && lease->plan == ticket->plan && lease->arm == ticket->arm &&
      lease->position == ticket->position && lease->worker == ticket->worker && lease->slot == ticket->slot) {
    lease_end(broker, conn, ticket->lease, true);
  }
}

static enum cv_err on_token(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_token *token) {
  struct cv_ticket ticket;
  struct cv_campaign *campaign = NULL;
  enum cv_verdict verdict;
  struct objection objection = {.kind = CV_REFUSALS};
  enum cv_err err = cv_ticket_open(token->ticket, &broker->config.tagger, &ticket);
  if (err == CV_ERR_NOMEM) {
    return err;
  }
  if (err != CV_OK) {
    verdict = refuse(&objection, CV_REFUSED_TICKET, "the ticket is not one of this broker's");
  } else {
    campaign = cv_campaign_find(broker, ticket.campaign);
    verdict = check_token(conn, campaign, &ticket, token, &objection);
    if (verdict == CV_VERDICT_ACCEPTED) {
      CV_TRY(count_token(broker, campaign, &ticket, token, &verdict, &objection));
    }
    end_lease_of(broker, conn, &ticket);
  }
  struct cv_broker_figures *figures = &broker->figures;
  switch (verdict) {
    case CV_VERDICT_ACCEPTED:
      figures->tokens++;
      reward(conn);
      break;
    case CV_VERDICT_DUPLICATE:
      figures->duplicates++;
      break;
    case CV_VERDICT_EXPIRED:
      figures->expired++;
      break;
    default:
      figures->refused++;
      cv_refusals_add(&figures->refusals, objection.kind);
      cv_broker_note(broker, conn->who, "refused a token: %s", objection.why);
      break;
  }
  struct cv_crowd_ack *ack = PUSH(&conn->gather, ack, acks, acks_cap);
  if (ack == NULL) {
    return CV_ERR_NOMEM;
  }
  conn->gathered += verdict != CV_VERDICT_ACCEPTED; /* those are bounded by the connection's credit */
  memcpy(ack->ticket, token->ticket, sizeof(ack->ticket));
  ack->verdict = verdict;
  ack->why = objection.why;
  broker->said = true;
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
  end_lease_of(broker, conn, &ticket);
  return CV_OK;
}

static void on_decline(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_decline *decline) {
  struct cv_dealing *dealing = decline->campaign > UINT32_MAX ? NULL : find_dealing(conn, (uint32_t)decline->campaign);
  if (dealing == NULL || dealing->declined) {
    return;
  }
  dealing->declined = true;
  broker->said = true; /* its places may go to others */
  cv_broker_note(broker, conn->who, "declined campaign %u: %s", dealing->campaign,
                 decline->why != NULL ? decline->why : "no reason given");
  for (uint32_t at = conn->lease_first; at != NONE;) {
    uint32_t after = conn->lease[at].after;
    if (conn->lease[at].campaign == dealing->campaign) {
      lease_end(broker, conn, at, true);
    }
    at = after;
  }
}

static enum cv_err on_frame(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_crowd_frame *frame,
                            struct cv_why *why) {
  CV_TRY(cv_broker_greet(broker, conn, &frame->hello, why));
  if (!conn->hello_sent) {
    conn->gather.frame.hello = cv_broker_hello(conn);
  }
  if (frame->assigns + frame->acks + frame->backoffs + frame->campaigns + frame->dones > 0) {
    return cv_fail(why, CV_ERR_DENIED, "a message that only a broker may send");
  }
  for (size_t i = 0; i < frame->declines; i++) {
    if (frame->decline[i].has_ticket) {
      CV_TRY(on_decline_one(broker, conn, &frame->decline[i]));
    } else {
      on_decline(broker, conn, &frame->decline[i]);
    }
  }
  for (size_t i = 0; i < frame->tokens; i++) {
    CV_TRY(on_token(broker, conn, &frame->token[i]));
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
