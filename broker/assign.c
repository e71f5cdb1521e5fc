/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/assign.h"

#include <stdlib.h>
#include <string.h>

#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/payer.h"
#include "broker/places.h"
#include "broker/question.h"
#include "broker/shown.h"
#include "broker/state.h"
#include "broker/talk.h"
#include "broker/two.h"
#include "broker/workers.h"
#include "common/base/array.h"

/* Delays after which a worker turned away comes again. */
enum { ROOM_LATER_MS = 10000, WISH_LATER_MS = 20, ANSWERED_LATER_MS = 200 };
static const uint32_t NONE = CV_LEASE_NONE;

/* Whether the arm has a free place that the connection may have a score for, and its share of it is not used up. */
static bool has_place(const struct cv_broker *broker, const struct cv_broker_workers *workers,
                      const struct cv_broker_campaign *campaign, const struct cv_dealing *dealing, uint32_t arm) {
  return cv_arm_has_place(&campaign->arm[arm], cv_dealing_below(dealing, arm)) &&
         dealing->held[cv_broker_gold_item_of(&campaign->gold, arm)] <
             cv_broker_workers_places(broker, workers, &campaign->arm[arm]);
}

/* Whether the worker may be asked about the arm; of a pair only its place says who the opponent is. */
static bool is_new(struct cv_broker_campaign *campaign, uint64_t worker, uint32_t arm) {
  return campaign->spec.pairs ||
         cv_broker_question_is_new(campaign, worker, cv_broker_question_number(campaign, arm, 0));
}

/* The arm of a place that is drawn from those that the worker may be asked for. NONE if there is none. */
static uint32_t draw_arm(const struct cv_broker *broker, const struct cv_broker_workers *workers,
                         struct cv_broker_campaign *campaign, const struct cv_dealing *dealing, uint64_t worker) {
  enum { TRIES = 16 };
  uint64_t eligible = 0;
  for (int i = 0; i < TRIES && campaign->urn.places > 0; i++) {
    uint32_t arm = cv_urn_draw(&campaign->urn, &campaign->order.rng);
    if (has_place(broker, workers, campaign, dealing, arm) && is_new(campaign, worker, arm)) {
      return arm;
    }
  }
  /* Few are left, or none: look at all of them. */
  uint32_t drawn = NONE;
  for (uint32_t arm = 0; campaign->urn.places > 0 && arm < campaign->spec.arms; arm++) {
    if (has_place(broker, workers, campaign, dealing, arm) && is_new(campaign, worker, arm)) {
      uint64_t places = cv_arm_free_places(&campaign->arm[arm]);
      eligible += places;
      drawn = cv_rng_below(&campaign->order.rng, eligible) < places ? arm : drawn;
    }
  }
  return drawn;
}

/* The arm with a place for this connection: the paid worker's own, the one that the worker wishes, or a drawn one. NONE
 * if there is none. */
static uint32_t pick_arm(const struct cv_broker *broker, const struct cv_broker_workers *workers,
                         struct cv_broker_campaign *campaign, const struct cv_dealing *dealing,
                         const struct cv_seat *seat, uint64_t worker) {
  uint32_t arms = campaign->spec.arms;
  if (seat != NULL) {
    return has_place(broker, workers, campaign, dealing, seat->arm) ? seat->arm : NONE;
  }
  /* A worker that chose its items could leave out all that it takes for gold. */
  if (workers->wish != CV_WISH_NONE && campaign->gold.terms.items == 0) {
    return workers->wish < arms && has_place(broker, workers, campaign, dealing, workers->wish) &&
                   is_new(campaign, worker, workers->wish)
               ? workers->wish
               : NONE;
  }
  return draw_arm(broker, workers, campaign, dealing, worker);
}

/* Takes a place of that arm; NONE if there is none. */
static uint32_t take_place(const struct cv_broker *broker, const struct cv_broker_workers *workers,
                           struct cv_broker_campaign *campaign, const struct cv_dealing *dealing,
                           const struct cv_seat *seat, uint64_t worker, uint32_t *ret_position) {
  uint32_t arm;
  do { /* an arm whose places are all filled has none left and is not picked again */
    arm = pick_arm(broker, workers, campaign, dealing, seat, worker);
  } while (arm != NONE && !cv_arm_take_place(campaign, arm, cv_dealing_below(dealing, arm), ret_position));
  return arm;
}

/* What a worker compares with its own limit: the campaign's epsilon, and what its neutral tokens cost beside it. */
static uint64_t told_micro(const struct cv_broker_campaign *campaign) {
  uint64_t beside = campaign->privacy.is_exact ? 0 : campaign->gold.terms.epsilon_micro;
  uint64_t both = campaign->spec.epsilon_micro + beside;
  return beside > 0 && campaign->privacy.cost_micro > both ? campaign->privacy.cost_micro : both;
}

static enum cv_err tell_terms(const struct cv_broker *broker, struct cv_broker_workers *workers,
                              const struct cv_broker_campaign *campaign) {
  /* Sent once per connection and campaign, before its first assignment. */
  struct cv_broker_outbox *out = &workers->gather;
  struct cv_terms *terms = CV_ARRAY_PUSH(out->frame.campaign, out->frame.campaigns, out->campaigns_cap);
  if (terms == NULL) {
    return CV_ERR_NOMEM;
  }
  *terms = (struct cv_terms){
      .id = campaign->id,
      .privatizer = campaign->spec.privatizer,
      .mechanism = campaign->spec.mechanism,
      .epsilon_micro = told_micro(campaign),
      .tokens_per_worker = campaign->spec.tokens_per_worker,
      .arms = cv_broker_gold_items(&campaign->gold),
      .pairs = campaign->spec.pairs,
      .repeat = campaign->spec.repeat,
      .scale = campaign->spec.scale,
      .lease_ms = broker->config.limits.lease_ms,
  };
  if (campaign->two != NULL) {
    terms->split = campaign->two->split;
  }
  memcpy(terms->name, campaign->spec.name, sizeof(terms->name));
  memcpy(terms->requester, campaign->requester, sizeof(terms->requester));
  return CV_OK;
}

/* What a worker is asked: an item, at a place in the stream of tokens of an arm. */
struct question {
  uint32_t item;
  uint32_t position; /* from the start of the open epoch */
  uint64_t place;    /* in the item's stream of tokens */
  const struct cv_arm *arm;
  uint32_t arms, shown[CV_VALUES_MAX]; /* the items that the assignment shows, this one first */
  uint32_t opponent;                   /* 1 + the item that it is compared with; 0: none */
  uint64_t number;                     /* question.h */
};

/* Asks for the taken place of the arm. */
static enum cv_err ask_arm(const struct cv_broker *broker, const struct cv_broker_campaign *campaign, uint32_t arm,
                           uint32_t position, struct question *ret) {
  *ret = (struct question){.item = cv_broker_gold_item_of(&campaign->gold, arm),
                           .position = position,
                           .place = campaign->arm[arm].first + position,
                           .arm = &campaign->arm[arm]};
  ret->arms = cv_shown_list(campaign, arm, ret->shown);
  ret->shown[0] = ret->item; /* with further arms there are no gold items, and items are arms */
  CV_TRY(cv_broker_question_opponent(broker, campaign, arm, position, &ret->opponent));
  ret->number = cv_broker_question_number(campaign, arm, ret->opponent);
  return CV_OK;
}

/* Asks a gold item beside an arm with a free place, which it does not take. Its `position` is the number of that arm:
 * the answer comes too late when one of that arm would (workers.c). */
static void ask_gold(struct cv_broker_campaign *campaign, uint32_t gold, uint32_t arm, struct question *ret) {
  uint32_t item = cv_broker_gold_item_of(&campaign->gold, gold);
  *ret = (struct question){.item = item,
                           .position = arm,
                           .arm = &campaign->arm[arm],
                           .arms = 1,
                           .shown = {item},
                           .number = cv_broker_question_number(campaign, gold, 0)};
}

/* Where the assignment stands: `round` and `switched` in the order of all arms' plays, for workers whose answers depend
 * on it. In a campaign with gold items, which fill no places, all assignments have numbers of their own instead. */
static void number_assignment(struct cv_broker_campaign *campaign, const struct cv_lease *lease,
                              const struct question *asked, struct cv_assign *assign) {
  assign->opponent = asked->opponent;
  if (campaign->gold.terms.items > 0) {
    assign->place = assign->round = campaign->gold.asked++;
    assign->switched = 0;
    return;
  }
  const struct cv_arm *arm = asked->arm;
  uint64_t switched = arm->switched == 0 ? 0 : arm->switched + (uint64_t)lease->position;
  assign->place = asked->place;
  assign->round = arm->round + lease->position;
  assign->switched = switched > CV_MEMORY_MAX ? 0 : (uint32_t)switched;
}

static enum cv_err give(struct cv_broker *broker, struct cv_broker_workers *workers,
                        struct cv_broker_campaign *campaign, struct cv_dealing *dealing, const struct cv_lease *lease,
                        const struct question *asked, uint64_t wall_ms) {
  /* Allocate everything first, so that an error leaves lease and share untouched. */
  uint32_t *many = asked->arms == 1 ? NULL : malloc(asked->arms * sizeof(*many));
  struct cv_broker_outbox *out = &workers->gather;
  struct cv_assign *assign =
      asked->arms > 1 && many == NULL ? NULL : CV_ARRAY_PUSH(out->frame.assign, out->frame.assigns, out->assigns_cap);
  if (assign == NULL) {
    free(many);
    return CV_ERR_NOMEM;
  }
  uint32_t at = cv_leases_add(&workers->leases, lease);
  if (campaign->two != NULL) {
    campaign->two->leased++;
  }
  dealing->held[lease->item]++;
  const struct cv_ticket ticket = {
      .campaign = campaign->id,
      .plan = (uint32_t)lease->plan,
      .item = lease->item,
      .position = lease->position,
      .worker = lease->worker,
      .slot = lease->slot,
      .lease = at,
      .expiry = (uint32_t)((wall_ms + broker->config.limits.lease_ms) / 1000),
      .is_masked = campaign->gold.terms.items > 0,
  };
  assign->campaign = campaign->id;
  assign->worker = lease->worker;
  assign->plan = campaign->two != NULL ? lease->plan : 0;
  assign->slot = campaign->two != NULL ? lease->slot : 0;
  assign->arms = asked->arms;
  if (asked->arms == 1) {
    assign->arm.one = asked->item;
  } else {
    memcpy(many, asked->shown, asked->arms * sizeof(*many));
    assign->arm.many = many;
  }
  number_assignment(campaign, lease, asked, assign);
  broker->said = true;
  return cv_ticket_seal(&ticket, &broker->config.tagger, assign->ticket);
}

/* The outcome of one attempt to assign a place to a waiting worker. */
enum fate {
  FATE_ASSIGNED,
  FATE_WAITS,     /* no place: workers behind it get none either */
  FATE_ELSEWHERE, /* there are places, but none of the arm that the worker wishes */
  FATE_ANSWERED,  /* there are places, but the worker has answered what they ask */
  FATE_PASSED,    /* its own arm has no place; workers behind it may have other arms */
  FATE_BUSY,      /* its remaining tokens, or its epsilon, are all assigned: workers behind it may go first */
  FATE_LATER,     /* the tables have no room for its token */
  FATE_NEVER,
  FATE_DECLINED,
};

/* Finds the worker's arm in a recruitment and its next free slot; FATE_WAITS if only a place is missing. */
static enum fate find_payer(struct cv_broker *broker, const struct cv_broker_conn *conn,
                            struct cv_broker_campaign *campaign, uint64_t worker, struct cv_seat **ret_seat,
                            uint32_t *ret_slot, const char **ret_why) {
  struct cv_seat *seat = NULL;
  if (cv_payroll_is_kept(&campaign->payroll)) {
    seat = cv_payroll_find(&campaign->payroll, worker);
    if (seat == NULL) {
      *ret_why = "the campaign's recruitment does not name this worker";
      return FATE_NEVER;
    }
  }
  bool used_up;
  uint32_t slots = campaign->spec.tokens_per_worker;
  uint32_t slot = (uint32_t)cv_offers_find(&campaign->offered, &campaign->payers,
                                           cv_broker_campaign_payer_bit(campaign, worker, 0), slots, &used_up);
  if (slot == slots) {
    *ret_why = "all tokens of this worker have been given";
    return used_up ? FATE_NEVER : FATE_BUSY;
  }
  enum cv_pays pays = cv_broker_campaign_can_pay(broker, campaign, worker, campaign->shown_most);
  if (pays != CV_PAYS) {
    *ret_why = CV_LIFETIME_SPENT;
    return pays == CV_PAYS_LATER ? FATE_BUSY : FATE_NEVER;
  }
  if (!cv_broker_campaign_has_room(broker, campaign, &conn->identity, worker, slot, 0)) {
    return FATE_LATER;
  }
  *ret_seat = seat;
  *ret_slot = slot;
  return FATE_WAITS;
}

/* Takes a place of which the worker may be asked the question; *ret_found is false if there is none. In a campaign of
 * pairs places are taken until one has a new pair, and the others are returned. */
static enum cv_err take_question(struct cv_broker *broker, const struct cv_broker_workers *workers,
                                 struct cv_broker_campaign *campaign, const struct cv_dealing *dealing,
                                 const struct cv_seat *seat, uint64_t worker, struct question *ret, bool *ret_found) {
  enum { TRIES = 16 };
  struct {
    uint32_t arm, position;
  } aside[TRIES];
  int n = 0;
  enum cv_err err = CV_OK;
  for (*ret_found = false; n < TRIES && !*ret_found && err == CV_OK;) {
    uint32_t position, arm = take_place(broker, workers, campaign, dealing, seat, worker, &position);
    if (arm == NONE) {
      break;
    }
    err = ask_arm(broker, campaign, arm, position, ret);
    *ret_found = err == CV_OK && cv_broker_question_is_new(campaign, worker, ret->number);
    if (!*ret_found) {
      aside[n].arm = arm;
      aside[n++].position = position;
    }
  }
  while (n-- > 0) { /* a place that was taken has room among the returned ones */
    enum cv_err back = cv_arm_return_place(campaign, aside[n].arm, aside[n].position);
    err = err == CV_OK ? back : err;
  }
  return err;
}

/* One of the gold items that the worker has not been asked about, in the order of arms; NONE if it has been asked about
 * all of them, or if it is not time for one. */
static uint32_t draw_gold(const struct cv_broker *broker, struct cv_broker_campaign *campaign, uint64_t worker) {
  uint32_t drawn = NONE, seen = 0;
  if (!cv_broker_gold_is_due(&campaign->gold, broker->config.noise)) {
    return NONE;
  }
  for (uint32_t i = 0; i < campaign->gold.terms.items; i++) {
    uint32_t gold = campaign->spec.arms + i;
    if (is_new(campaign, worker, gold) && cv_rng_below(broker->config.noise, ++seen) == 0) {
      drawn = gold;
    }
  }
  return drawn;
}

/* What to ask this worker next: the place of an arm, which is taken, or a gold item. *ret_found is false if there is
 * nothing. */
static enum cv_err find_question(struct cv_broker *broker, const struct cv_broker_workers *workers,
                                 struct cv_broker_campaign *campaign, const struct cv_dealing *dealing,
                                 const struct cv_seat *seat, uint64_t worker, struct question *ret, bool *ret_found) {
  uint32_t gold = draw_gold(broker, campaign, worker);
  if (gold == NONE || cv_dealing_below(dealing, gold) == 0) {
    return take_question(broker, workers, campaign, dealing, seat, worker, ret, ret_found);
  }
  /* Only while other items are asked, too. */
  uint32_t beside = pick_arm(broker, workers, campaign, dealing, seat, worker);
  if (beside != NONE) {
    ask_gold(campaign, gold, beside, ret);
  }
  *ret_found = beside != NONE;
  return CV_OK;
}

/* What becomes of a worker that there is nothing to ask. */
static enum fate without_question(const struct cv_broker *broker, const struct cv_broker_workers *workers,
                                  const struct cv_broker_campaign *campaign, const struct cv_dealing *dealing,
                                  const struct cv_seat *seat) {
  if (campaign->urn.places == 0) {
    return FATE_WAITS;
  }
  if (seat != NULL) {
    return FATE_PASSED;
  }
  if (workers->wish != CV_WISH_NONE) {
    return FATE_ELSEWHERE;
  }
  for (uint32_t arm = 0; campaign->answered.questions > 0 && arm < campaign->spec.arms; arm++) {
    if (has_place(broker, workers, campaign, dealing, arm)) {
      return FATE_ANSWERED;
    }
  }
  return FATE_WAITS;
}

static enum cv_err try_campaign(struct cv_broker *broker, struct cv_broker_conn *conn,
                                struct cv_broker_campaign *campaign, uint64_t worker, uint64_t now_ms, uint64_t wall_ms,
                                enum fate *ret_fate, const char **ret_why) {
  struct cv_broker_workers *workers = conn->workers;
  struct cv_dealing *dealing;
  enum cv_err err = cv_dealings_make(broker, &workers->dealings, campaign, &dealing);
  if (err != CV_OK) {
    *ret_fate = FATE_WAITS; /* until an older campaign of this connection ends */
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
    CV_TRY(tell_terms(broker, workers, campaign));
    dealing->told = true;
    broker->said = true;
  }
  /* The lease is reserved first: a place must not be taken without a lease that returns it. */
  CV_TRY(cv_leases_reserve(&workers->leases));
  struct question asked;
  bool found;
  CV_TRY(cv_broker_question_order(broker, campaign));
  CV_TRY(find_question(broker, workers, campaign, dealing, seat, worker, &asked, &found));
  if (!found) {
    *ret_fate = without_question(broker, workers, campaign, dealing, seat);
    return CV_OK;
  }
  /* From here on the slot counts as assigned, so the worker cannot get a second place for the same token. */
  CV_TRY(cv_offers_set(&campaign->offered, cv_broker_campaign_payer_bit(campaign, worker, slot)));
  CV_TRY(cv_broker_question_begin(campaign, worker, asked.number));
  *ret_fate = FATE_ASSIGNED;
  const struct cv_lease lease = {
      .worker = worker,
      .plan = asked.arm->plan,
      .deadline_ms = now_ms + broker->config.limits.lease_ms,
      .again_ms = now_ms + (broker->config.limits.lease_ms / CV_AGAIN >> workers->penalty),
      .campaign = campaign->id,
      .question = asked.number,
      .item = asked.item,
      .position = asked.position,
      .slot = slot,
  };
  return give(broker, workers, campaign, dealing, &lease, &asked, wall_ms);
}

/* Whether places of the campaign can be assigned at present. */
static bool is_dealing(const struct cv_broker_campaign *campaign) {
  return campaign->phase == CV_PHASE_RUNNING && cv_two_may_assign(campaign);
}

/* No campaign will ever assign this worker a place: names each campaign, else the worker comes again for another one.
 * */
static enum cv_err send_away(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t worker, uint64_t now_ms,
                             uint64_t wall_ms) {
  for (struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    enum fate fate = FATE_DECLINED;
    const char *why = NULL;
    if (is_dealing(campaign)) {
      CV_TRY(try_campaign(broker, conn, campaign, worker, now_ms, wall_ms, &fate, &why));
    }
    if (fate == FATE_NEVER) {
      CV_TRY(cv_broker_workers_turn_away(broker, conn->workers, worker, 0, campaign->id, why));
    }
  }
  return CV_OK;
}

/* A place is free, but the tables have no room for this certificate: the worker comes again later. */
static enum cv_err put_off(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t worker) {
  static const char why[] = "the workers' tables have no room for more workers of this certificate";
  cv_refusals_add(&broker->figures.refusals, CV_REFUSED_LIMIT);
  cv_broker_note(broker, conn->who, NULL, "workers turned away for now: %s", why);
  return cv_broker_workers_turn_away(broker, conn->workers, worker, ROOM_LATER_MS, 0, why);
}

static enum cv_err assign_one(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t worker, uint64_t now_ms,
                              uint64_t wall_ms, enum fate *ret_fate) {
  enum fate fate = FATE_NEVER;
  bool never = false, later = false, waits = false, busy = false, passed = false, elsewhere = false, answered = false;
  /* Campaigns in the order of their age; the first one that has a place assigns it. */
  for (struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    if (!is_dealing(campaign)) {
      waits = waits || campaign->phase <= CV_PHASE_RUNNING;
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
    answered = answered || fate == FATE_ANSWERED;
    busy = busy || fate == FATE_BUSY;
    later = later || fate == FATE_LATER;
    never = never || fate == FATE_NEVER;
  }
  /* Without a place, the best outcome for the worker decides: one that may get a place soon stays in the queue. */
  *ret_fate = passed      ? FATE_PASSED
              : elsewhere ? FATE_ELSEWHERE
              : answered  ? FATE_ANSWERED
              : waits     ? FATE_WAITS
              : busy      ? FATE_BUSY
              : later     ? FATE_LATER
              : never     ? FATE_NEVER
                          : FATE_WAITS;
  if (*ret_fate == FATE_ELSEWHERE) {
    return cv_broker_workers_turn_away(broker, conn->workers, worker, WISH_LATER_MS, 0,
                                       "no free place of the arm that this worker asks for");
  }
  if (*ret_fate == FATE_ANSWERED) {
    return cv_broker_workers_turn_away(broker, conn->workers, worker, ANSWERED_LATER_MS, 0,
                                       "this worker has answered all questions that are open now");
  }
  return *ret_fate == FATE_NEVER   ? send_away(broker, conn, worker, now_ms, wall_ms)
         : *ret_fate == FATE_LATER ? put_off(broker, conn, worker)
                                   : CV_OK;
}

/* One turn of a connection: its queue once, within its credit, the free places and its share of unproductive answers.
 * */
static enum cv_err assign_conn(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t now_ms,
                               uint64_t wall_ms) {
  struct cv_broker_workers *workers = conn->workers;
  uint32_t waiting = workers->waiting_count, busy = 0, passed = 0;
  size_t away = 0, share = cv_broker_workers_share(broker);
  for (uint32_t i = 0; i < waiting && busy < CV_BUSY_MAX && passed < CV_PASSED_MAX &&
                       workers->leases.open + workers->waits < workers->credit;
       i++) {
    const struct cv_waiting who = workers->waiting[workers->waiting_head];
    enum fate fate;
    /* A queue of workers that are all turned away must not occupy the whole flush. */
    if (away == share) {
      broker->unserved = true;
      break;
    }
    workers->wish = who.wish;
    CV_TRY(assign_one(broker, conn, who.worker, now_ms, wall_ms, &fate));
    if (fate == FATE_WAITS) { /* workers behind it would wait for the same places */
      break;
    }
    workers->waiting_head = (workers->waiting_head + 1) % workers->waiting_cap;
    workers->waiting_count--;
    away += fate == FATE_NEVER || fate == FATE_LATER || fate == FATE_ELSEWHERE || fate == FATE_ANSWERED;
    /* A worker that may get a place later goes to the end of the queue; all others have been answered. */
    if (fate == FATE_BUSY || fate == FATE_PASSED) {
      busy += fate == FATE_BUSY;
      passed += fate == FATE_PASSED;
      CV_TRY(cv_broker_workers_wait(broker, workers, who));
    }
  }
  return CV_OK;
}

static bool is_running(const struct cv_broker *broker) {
  for (const struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    if (campaign->phase == CV_PHASE_RUNNING) {
      return true;
    }
  }
  return false;
}

enum cv_err cv_broker_assign(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms) {
  broker->unserved = false;
  /* While draining, answers to open assignments still count; no new ones are made. */
  if (broker->draining || !is_running(broker)) {
    return CV_OK;
  }
  /* Each turn starts with a different connection, so that none always gets the last places. */
  struct cv_broker_conn *first =
      broker->fair != NULL && broker->fair->next != NULL ? broker->fair->next : broker->conns;
  struct cv_broker_conn *conn = first;
  while (conn != NULL) { /* once around the ring of connections, back to the first */
    if (conn->workers != NULL && conn->workers->credit > 0 && !conn->close_due) {
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
