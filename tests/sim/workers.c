/* SPDX-License-Identifier: Apache-2.0 */
/* An honest gateway: the workers' core and turn as in worker/shell.c; the world stores what given.db would, in some
 * worlds also the rows of persons, or those of parts (parts.h). */
#include <stdlib.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "common/base/mechanisms.h"
#include "common/daemon/turn.h"
#include "tests/sim/cobroker.h"
#include "tests/sim/net.h"
#include "tests/sim/parts.h"
#include "tests/sim/sealing.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"
#include "worker/core.h"

enum { TIMER_FLUSH, FLUSH_MS = 20 };

/* The rows of the tables as lists of names: a gateway accepts every one. */
#define PRIVATIZER_NAME(file, kind, name, ...) name " "
#define MECHANISM_NAME(id, name, ...)          name " "

struct self {
  struct cv_work work;
  struct cv_worker *pool;
  struct cv_stock *stock; /* NULL: its workers are not persons */
  struct cv_rng_seeded rng;
  struct cv_turn turn;
  struct cv_crowd_frame frame; /* of this turn */
  bool due, speaks;
  uint32_t *noted;      /* by worker: the number of scores given, not stored yet; 0: nothing new */
  uint32_t *wish;       /* by worker, its latest wish */
  struct end *end, *co; /* NULL: not connected; to the co-broker */
  struct cv_session_ops sessions;
  struct cv_rng_seeded fresh;
  struct cv_duo pair;
  struct part part;
};

/* The workers of the last honest gateway are honest about all items but the gold ones, and sometimes about those. */
static enum cv_err score(void *data, uint32_t item, const struct cv_moment *at, int64_t *ret_score) {
  const struct party *party = data;
  const struct world *world = party->world;
  const struct scenario *scenario = &world->scenario;
  uint32_t arm = scenario_arm(scenario, item);
  struct part *part = party->part;
  part->arm = arm;
  part->opponent = at->opponent;
  part->at = part->number = at->place;
  if (scenario->parts) {
    return part_score(part, ret_score);
  }
  CV_REQUIRE(scenario->pairs == (at->opponent > 0) && at->opponent != arm + 1);
  bool errs = party->number + 1 == world->first_pool + scenario->pools && at->place % 3 < 2;
  *ret_score = arm < scenario->arms ? world_score(scenario, arm, at->place)
               : errs               ? CV_GRID - scenario->gold[arm - scenario->arms].answer
                                    : scenario->gold[arm - scenario->arms].answer;
  return CV_OK;
}

static void show(void *data, uint64_t worker, uint32_t arm, int64_t score, int64_t value) {
  const struct party *party = data;
  if (!party->world->scenario.persons) {
    truth_said(party->world->truth, worker, party->part, value);
  }
}

static void give(void *data, uint64_t worker, uint32_t scores) {
  const struct party *party = data;
  const struct self *self = party->self;
  self->noted[worker - party->identity.first] = scores;
}

/* ---- the turn ---- */

static bool is_pending(void *data) {
  struct party *party = data;
  const struct self *self = party->self;
  return self->due && party_step(party);
}

static enum cv_err flush(void *data, bool *ret_store) {
  struct party *party = data;
  struct self *self = party->self;
  self->due = false;
  party_enter(party);
  self->speaks = self->end != NULL && cv_worker_flush(self->pool, party_mono_ms(party), &self->frame);
  party_leave(party);
  *ret_store = true;
  return party->exits ? CV_ERR_NOMEM : CV_OK;
}

static void keep_rows(struct party *party) {
  struct self *self = party->self;
  size_t rows = 0;
  const uint32_t *row = self->stock == NULL ? NULL : cv_stock_taken(self->stock, &rows);
  for (size_t i = 0; i < rows; i++) {
    party->world->row_given[row[i]] = true;
  }
  if (self->stock != NULL) {
    cv_stock_kept(self->stock);
  }
}

/* Stores all of it or nothing: the gateway may die before or after, or the disk is full. */
static enum cv_err commit(void *data, struct cv_why *why) {
  struct party *party = data;
  struct self *self = party->self;
  uint32_t *kept = &party->world->given[party->identity.first];
  if (!party_step(party) || party->is_full) {
    tally_add(TALLY_NOT_KEPT, party->is_full);
    party->is_full = false;
    return cv_fail(why, CV_ERR_IO, "no room, or it dies");
  }
  for (uint32_t i = 0; i < party->world->scenario.pool_workers; i++) {
    kept[i] = self->noted[i] > 0 ? self->noted[i] : kept[i];
    self->noted[i] = 0;
  }
  keep_rows(party);
  part_keep(&self->part);
  return party_step(party) ? CV_OK : cv_fail(why, CV_ERR_IO, "it dies");
}

static void keep_wishes(struct party *party, const struct cv_arrive *arrive) {
  struct self *self = party->self;
  for (size_t i = 0; i < arrive->workers; i++) {
    self->wish[arrive->worker[i] - party->identity.first] = arrive->wish == NULL ? CV_WISH_NONE : arrive->wish[i];
  }
}

static void say(void *data) {
  struct party *party = data;
  struct self *self = party->self;
  if (!self->speaks) {
    return;
  }
  truth_gave(party->world->truth, &self->frame);
  for (size_t i = 0; i < self->frame.arrives; i++) {
    keep_wishes(party, &self->frame.arrive[i]);
  }
  net_send_frame(self->end, &CV_CROWD_WIRE, &self->frame);
}

/* To the co-broker nothing leaves that would have to be stored before. */
static void ask_cobroker(struct party *party) {
  struct self *self = party->self;
  struct cv_share_frame frame;
  if (self->co == NULL || party->dead || party->exits) {
    return;
  }
  party_enter(party);
  bool due = cv_worker_flush_share(self->pool, party_mono_ms(party), &frame);
  party_leave(party);
  if (due && !party->exits) {
    net_send_frame(self->co, &CV_SHARE_WIRE, &frame);
  }
}

static void on_failure(void *data, const char *what, const struct cv_why *why) {
  struct party *party = data;
  world_log(party->world, "%s: %s: %s", party->identity.name, what, why->text);
  party->exits = party->exits || !party->dead;
}

static const struct cv_turn_ops turn_ops = {
    .is_pending = is_pending, .flush = flush, .commit = commit, .say = say, .fail = on_failure};

static void turn_over(struct party *party) {
  struct self *self = party->self;
  self->due = true;
  cv_turn_over(&self->turn);
  ask_cobroker(party);
}

/* ---- in ---- */

static void opened(struct party *party, struct end *end) {
  struct self *self = party->self;
  const struct cv_identity *peer = &end->other->party->identity;
  if (peer->role == CV_ROLE_COBROKER) {
    self->co = end;
    cv_worker_join_co(self->pool, &peer->key);
  } else {
    self->end = end;
    cv_worker_join(self->pool, &peer->key, party_mono_ms(party));
  }
  turn_over(party);
}

/* 16: a worker that wishes for an arm gets no other one. */
static void check_wishes(struct party *party, const struct cv_crowd_frame *frame) {
  const struct self *self = party->self;
  for (size_t i = 0; i < frame->assigns; i++) {
    const struct cv_assign *assign = &frame->assign[i];
    uint32_t wish = self->wish[assign->worker - party->identity.first];
    uint32_t arm = assign->arms == 1 ? assign->arm.one : assign->arm.many[0];
    tally_add(TALLY_GRANTED, wish == arm);
    if (wish != CV_WISH_NONE && wish != arm) {
      world_fail(party->world, "16: worker %llu came for arm %u and is assigned arm %u",
                 (unsigned long long)assign->worker, wish, arm);
    }
  }
}

static enum cv_err take(struct party *party, struct end *end, const uint8_t *bytes, size_t n, struct cv_why *why) {
  struct self *self = party->self;
  struct world *world = party->world;
  union {
    struct cv_crowd_frame crowd;
    struct cv_share_frame share;
  } frame;
  enum cv_err err;
  if (end == self->co) {
    CV_REQUIRE(cv_share_decode(bytes, n, &world->decoding, &frame.share) == CV_OK);
    party_enter(party);
    err = cv_worker_on_share(self->pool, &frame.share, party_mono_ms(party), why);
  } else {
    CV_REQUIRE(cv_crowd_decode(bytes, n, &world->decoding, &frame.crowd) == CV_OK);
    check_wishes(party, &frame.crowd);
    party_enter(party);
    err = cv_worker_on_crowd(self->pool, &frame.crowd, party_mono_ms(party), why);
  }
  party_leave(party);
  return err;
}

static void part(struct party *party, const struct end *end) {
  struct self *self = party->self;
  if (self->co == end) {
    cv_worker_leave_co(self->pool);
    self->co = NULL;
  } else if (self->end == end) {
    cv_worker_leave(self->pool);
    self->end = NULL;
  }
}

static void frame(struct party *party, struct end *end, const uint8_t *bytes, size_t n) {
  struct world *world = party->world;
  struct self *self = party->self;
  struct cv_why why = {.text = ""};
  enum cv_err err = take(party, end, bytes, n, &why);
  if (party->exits) {
    return;
  }
  if (err == CV_OK) {
    turn_over(party);
    if (!party->dead && !party->exits && end == self->end && part_redials(&self->part)) {
      net_close(end);
      part(party, end);
    }
    return;
  }
  const char *peer = end->other->party->identity.name;
  world_log(world, "%s: the %s broke the protocol: %s", party->identity.name, peer, why.text);
  if (!world->rolled_back && !world->lied) {
    world_fail(world, "%s closes on the %s: %s", party->identity.name, peer, why.text);
  }
  net_close(end);
  part(party, end);
}

static void closed(struct party *party, struct end *end) {
  part(party, end);
}

static void timer(struct party *party, int which) {
  turn_over(party);
  party_after(party, FLUSH_MS, TIMER_FLUSH);
}

/* ---- sessions with the co-broker ---- */

static enum cv_err open_session(void *data, const struct cv_digest *context, void **ret) {
  const struct party *party = data;
  const struct self *self = party->self;
  if (self->co == NULL) {
    return CV_ERR_CLOSED;
  }
  uint8_t *key = malloc(CV_SPLIT_SEED_BYTES);
  if (key == NULL) {
    return CV_ERR_NOMEM;
  }
  sealing_key(self->co, context, key);
  *ret = key;
  return CV_OK;
}

static enum cv_err seal(void *data, void *key, uint64_t counter, const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                        const uint8_t seed[CV_SPLIT_SEED_BYTES], uint8_t ret[CV_SPLIT_SEALED_BYTES]) {
  const struct party *party = data;
  return sealing_close(party->world, key, counter, bound, seed, ret);
}

static void close_session(void *data, void *key) {
  free(key);
}

static void prepare_sessions(struct party *party) {
  struct self *self = party->self;
  const struct world *world = party->world;
  cv_rng_seeded_init(&self->fresh, world->scenario.seed, 96, party->number, party->life);
  self->sessions = (struct cv_session_ops){.digest = cv_sha256,
                                           .fresh = &self->fresh.rng,
                                           .open = open_session,
                                           .seal = seal,
                                           .close = close_session,
                                           .data = party};
  self->pair = world_duo(world);
}

/* Starts with the persons among its workers and the rows that they have given before. */
static void start_stock(struct party *party) {
  struct self *self = party->self;
  const struct world *world = party->world;
  const struct cv_stock_config config = {.persons = &world->persons,
                                         .first_worker = world->scenario.first_person,
                                         .first = party->identity.first,
                                         .last = party->identity.last,
                                         .arms = world->scenario.arms,
                                         .seed = world->scenario.seed + party->number};
  CV_REQUIRE(cv_stock_new(&config, &self->stock) == CV_OK && cv_stock_persons(self->stock) > 0);
  for (uint64_t row = 0; row < world->persons.start[world->persons.persons]; row++) {
    CV_REQUIRE(!world->row_given[row] || cv_stock_mark(self->stock, row));
  }
}

static bool start(struct party *party, struct cv_why *why) {
  struct world *world = party->world;
  struct self *self = calloc(1, sizeof(*self));
  CV_REQUIRE(self != NULL);
  party->self = self;
  self->turn = (struct cv_turn){.ops = &turn_ops, .data = party};
  self->noted = calloc(world->scenario.pool_workers, sizeof(*self->noted));
  self->wish = calloc(world->scenario.pool_workers, sizeof(*self->wish));
  CV_REQUIRE(self->noted != NULL && self->wish != NULL);
  if (world->scenario.persons) {
    start_stock(party);
  }
  cv_rng_seeded_init(&self->rng, world->scenario.seed, 77, 5 + party->number, party->life);
  prepare_sessions(party);
  bool is_picky = world->scenario.picky && party->number + 1 == world->first_pool + world->scenario.pools;
  self->work = (struct cv_work){.campaign = "sim",
                                .arms = world->scenario.arms + world->scenario.golds,
                                .pairs = world->scenario.pairs,
                                .hires = world->scenario.budget_micro > 0,
                                .score = score,
                                .data = party};
  part_start(&self->part, party, &self->work);
  const struct cv_worker_config config = {
      .first = party->identity.first,
      .last = party->identity.last,
      .concurrency = world->scenario.concurrency,
      .accept = {.requesters = is_picky ? "requester1" : "requester1, requester2",
                 .privatizers = CV_LOCALS(PRIVATIZER_NAME),
                 .mechanisms = CV_MECHANISMS(MECHANISM_NAME),
                 .epsilon_micro = 10000000,
                 .delta_pico = world->scenario.applied.law.delta_pico,
                 .pair = &self->pair,
                 .pairs = world->scenario.two,
                 .tokens = world->scenario.own_tokens},
      .work = &self->work,
      .works = 1,
      .stock = self->stock,
      .record = world->scenario.parts ? &self->part.record : NULL,
      .show = show,
      .note_data = party,
      .given = &world->given[party->identity.first],
      .give = give,
      .give_data = party,
      .rng = &self->rng.rng,
      .session = world->scenario.two ? &self->sessions : NULL,
      .coin_key = world->scenario.coin_key,
  };
  party_after(party, FLUSH_MS, TIMER_FLUSH);
  return cv_worker_new(&config, &self->pool, why) == CV_OK;
}

static void stop(struct party *party) {
  struct self *self = party->self;
  cv_worker_free(self->pool);
  cv_stock_free(self->stock);
  part_stop(&self->part);
  free(self->noted);
  free(self->wish);
  free(self);
}

const struct party_ops party_pool = {
    .start = start, .stop = stop, .opened = opened, .frame = frame, .closed = closed, .timer = timer};
