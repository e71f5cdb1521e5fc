/* SPDX-License-Identifier: Apache-2.0 */
/* The co-broker: its core, store and turn as in cobroker/shell.c, with a simulated network, clock and exporter. */
#include "tests/sim/cobroker.h"

#include <stdlib.h>
#include <string.h>

#include "cobroker/conn.h"
#include "cobroker/core.h"
#include "cobroker/store.h"
#include "common/daemon/turn.h"
#include "tests/sim/lies.h"
#include "tests/sim/net.h"
#include "tests/sim/sealing.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"
#include "tests/sim/two.h"
#include "tests/support/alloc_fault.h"

enum { TIMER_TURN, TIMER_COMMIT, TIMER_PACE, TIMER_TICK, TICK_MS = 50, SESSIONS = 64 };

struct self {
  struct cv_cobroker *core;
  struct cv_cobroker_store *store;
  struct cv_cobroker_batch batch;
  struct cv_turn turn;
  struct cv_rng_seeded noise, key;
  bool turning;
};

struct wire {
  struct end *end;
  struct cv_cobroker_conn *conn;
};

static void note(void *data, const struct cv_note *note) {
  struct world *world = data;
  world_log(world, "cobroker: %s%s%s", note->peer != NULL ? note->peer : "", note->peer != NULL ? ": " : "",
            note->text);
  lies_noted(world, note);
}

static enum cv_err export_key(void *data, void *shell, const struct cv_digest *context,
                              uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  const struct wire *wire = shell;
  sealing_key(wire->end, context, ret);
  return CV_OK;
}

static enum cv_err open_seed(void *data, const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                             const uint8_t bound[CV_SPLIT_BOUND_BYTES], const uint8_t sealed[CV_SPLIT_SEALED_BYTES],
                             uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  return sealing_open(key, counter, bound, sealed, ret);
}

/* ---- out ---- */

static void leave(struct self *self, struct wire *wire) {
  if (wire->conn != NULL) {
    cv_cobroker_leave(self->core, wire->conn);
    wire->conn = NULL;
  }
}

static void forget(struct world *world, struct event *event) {
  struct wire *wire = event->about;
  leave(event->party->self, wire);
}

static void deliver(struct party *party) {
  struct self *self = party->self;
  struct world *world = party->world;
  struct cv_cobroker_out out;
  while (party_step(party) && cv_cobroker_next_out(self->core, &out)) {
    struct wire *wire = cv_cobroker_conn_shell(out.conn);
    if (!wire->end->open) {
      continue;
    }
    if (wire->end->other->party == world->broker) {
      two_told(world->two, out.frame);
    }
    lies_send(world, wire->end, out.frame);
    if (out.close) {
      net_close(wire->end);
      world_at(world, 0, forget, party, wire, 0);
    }
  }
}

/* ---- the turn ---- */

static bool is_pending(void *data) {
  struct party *party = data;
  const struct self *self = party->self;
  return cv_cobroker_is_pending(self->core) && party_step(party);
}

static size_t gathered(void *data) {
  const struct party *party = data;
  const struct self *self = party->self;
  return cv_cobroker_gathered(self->core);
}

static enum cv_err flush(void *data, bool *ret_store) {
  struct party *party = data;
  struct self *self = party->self;
  party_enter(party);
  enum cv_err err =
      cv_cobroker_flush(self->core, party_mono_ms(party), world_wall_ms(party->world), &self->batch, ret_store);
  party_leave(party);
  if (party->exits) {
    return CV_ERR_NOMEM;
  }
  CV_REQUIRE(err == CV_OK);
  two_flushed(party->world->two, self->core);
  return CV_OK;
}

/* It may die before or after the commit; either counts as a failure. */
static enum cv_err commit(void *data, struct cv_why *why) {
  struct party *party = data;
  struct self *self = party->self;
  if (!party_step(party)) {
    return cv_fail(why, CV_ERR_IO, "it dies");
  }
  CV_TRY(cv_cobroker_store_commit(self->store, &self->batch, why));
  world_log(party->world, "cobroker: commit %llu, %zu operations", (unsigned long long)self->batch.commit,
            self->batch.ops);
  tally(TALLY_COMMITS_COBROKER);
  if (!party_step(party)) {
    return cv_fail(why, CV_ERR_IO, "it dies");
  }
  two_stored(party->world->two, self->batch.commit);
  return CV_OK;
}

static enum cv_err commit_here(void *data, struct cv_why *why) {
  tally(TALLY_COMMITS_HERE);
  return commit(data, why);
}

static void hand_over(void *data) {
  struct party *party = data;
  party_after(party, world_below(party->world, 6), TIMER_COMMIT);
}

static bool is_quick(void *data) {
  const struct party *party = data;
  return world_chance(party->world, 60);
}

static void say(void *data) {
  struct party *party = data;
  struct self *self = party->self;
  cv_cobroker_stored(self->core);
  deliver(party);
}

static void pace(void *data) {
  struct party *party = data;
  party_after(party, 1 + world_below(party->world, 8), TIMER_PACE);
}

static void on_failure(void *data, const char *what, const struct cv_why *why) {
  struct party *party = data;
  world_log(party->world, "cobroker: %s: %s", what, why->text);
  party->exits = party->exits || !party->dead;
}

static const struct cv_turn_ops turn_ops = {.is_pending = is_pending,
                                            .gathered = gathered,
                                            .flush = flush,
                                            .commit = commit_here,
                                            .hand_over = hand_over,
                                            .is_quick = is_quick,
                                            .say = say,
                                            .pace = pace,
                                            .fail = on_failure};

static void turn_soon(struct party *party) {
  struct self *self = party->self;
  if (!self->turning && !cv_turn_is_busy(&self->turn)) {
    self->turning = true;
    party_after(party, world_below(party->world, 3), TIMER_TURN);
  }
}

static void committed(struct party *party) {
  struct self *self = party->self;
  struct cv_why why;
  enum cv_err err = commit(party, &why);
  cv_turn_committed(&self->turn, err, &why);
}

static void timer(struct party *party, int which) {
  struct self *self = party->self;
  switch (which) {
    case TIMER_COMMIT:
      committed(party);
      return;
    case TIMER_PACE:
      cv_turn_paced(&self->turn);
      return;
    case TIMER_TICK:
      party_enter(party);
      cv_cobroker_tick(self->core, party_mono_ms(party), world_wall_ms(party->world));
      party_leave(party);
      if (!party->exits) {
        party_after(party, TICK_MS, TIMER_TICK);
        turn_soon(party);
      }
      return;
    default:
      self->turning = false;
      cv_turn_over(&self->turn);
      return;
  }
}

/* ---- in ---- */

/* As in common/daemon/lane.c: the peer receives the reason. */
static void reject(struct party *party, struct wire *wire, const struct cv_why *why) {
  struct cv_share_frame frame;
  world_log(party->world, "cobroker: %s is sent away: %s", wire->end->other->party->identity.name, why->text);
  CV_SHARE_WIRE.goodbye(why->text, "cobroker", &frame);
  net_send_frame(wire->end, &CV_SHARE_WIRE, &frame);
  net_close(wire->end);
}

static void opened(struct party *party, struct end *end) {
  struct self *self = party->self;
  struct wire *wire = calloc(1, sizeof(*wire));
  struct cv_why why;
  CV_REQUIRE(wire != NULL);
  wire->end = end;
  end->data = wire;
  party_enter(party);
  enum cv_err err = cv_cobroker_join(self->core, &end->other->party->identity, wire, &wire->conn, &why);
  party_leave(party);
  if (party->exits) {
    return;
  }
  if (err != CV_OK) {
    reject(party, wire, &why);
  }
  turn_soon(party);
}

static enum cv_err take(struct party *party, struct wire *wire, const uint8_t *bytes, size_t n, struct cv_why *why) {
  struct world *world = party->world;
  struct self *self = party->self;
  struct cv_share_frame frame;
  CV_TRY(cv_share_decode(bytes, n, &world->decoding, &frame));
  size_t before = wire->conn->gather.frame.answers;
  enum cv_err err =
      cv_cobroker_on_share(self->core, wire->conn, &frame, party_mono_ms(party), world_wall_ms(world), why);
  if (wire->end->other->party == world->broker) {
    bool was_armed = alloc_fault_aside();
    two_judged(world->two, &frame, &wire->conn->gather.frame, before);
    if (was_armed) {
      alloc_fault_arm();
    }
  }
  return err;
}

static void frame(struct party *party, struct end *end, const uint8_t *bytes, size_t n) {
  struct self *self = party->self;
  struct wire *wire = end->data;
  struct world *world = party->world;
  struct cv_why why = {.text = "not understood"};
  if (wire->conn == NULL || !party_step(party)) {
    return;
  }
  party_enter(party);
  enum cv_err err = take(party, wire, bytes, n, &why);
  party_leave(party);
  if (party->exits) {
    return;
  }
  if (err != CV_OK) {
    const struct party *peer = end->other->party;
    tally(TALLY_REFUSED_FRAME);
    if (!peer->hostile && !world->rolled_back && !world->lied) {
      world_fail(world, "the co-broker closes on %s, which is honest: %s", peer->identity.name, why.text);
    }
    lies_blamed(world, peer, why.text);
    reject(party, wire, &why);
    leave(self, wire);
  }
  turn_soon(party);
}

static void closed(struct party *party, struct end *end) {
  leave(party->self, end->data);
  turn_soon(party);
}

/* ---- start and end ---- */

struct cv_cobroker *cobroker_core(const struct party *cobroker) {
  const struct self *self = cobroker->self;
  return self->core;
}

static bool is_it(const void *serial, const char *other) {
  return strcmp(serial, other) == 0;
}

void cobroker_revoke(struct party *party, const char *serial) {
  struct self *self = party->self;
  const struct cv_cobroker_revoked revoked = {.has = is_it, .data = serial};
  party_enter(party);
  cv_cobroker_revoke(self->core, &revoked);
  party_leave(party);
  turn_soon(party);
}

struct cv_duo world_duo(const struct world *world) {
  struct cv_duo duo = {.broker = world->broker->identity.key};
  if (world->cobroker != NULL) {
    duo.cobroker = world->cobroker->identity.key;
  }
  return duo;
}

static void configure(struct party *party, struct cv_cobroker_config *ret) {
  struct self *self = party->self;
  const struct scenario *scenario = &party->world->scenario;
  *ret = (struct cv_cobroker_config){
      .broker = "broker",
      .duo = world_duo(party->world),
      .limits = {.epsilon_micro = 10000000,
                 .delta_pico = scenario->applied.law.delta_pico,
                 .worker_epsilon_micro = scenario->co_epsilon_micro,
                 .release_tokens = scenario->release_tokens,
                 .arms = SCENARIO_ARMS,
                 .campaigns = 8,
                 .kept = 8,
                 .tokens = 100000,
                 .chunks = 64},
      .sessions = SESSIONS,
      .digest = cv_sha256,
      .noise = &self->noise.rng,
      .noise_seeded = scenario->noise_seeded,
      .noise_seed = scenario->seed,
      .key = &self->key.rng,
      .journal_bytes = scenario->journal_bytes,
      .export_key = export_key,
      .open_seed = open_seed,
      .note = note,
      .note_data = party->world,
  };
}

static bool start(struct party *party, struct cv_why *why) {
  struct world *world = party->world;
  struct self *self = calloc(1, sizeof(*self));
  struct cv_cobroker_config config;
  const struct cv_store_files files = {.database = "C/cobroker.db", .anchor = "C/anchor", .vfs = CV_SIM_VFS};
  CV_REQUIRE(self != NULL);
  party->self = self;
  self->turn = (struct cv_turn){
      .ops = &turn_ops, .data = party, .crowd = world->scenario.batch_crowd, .full = world->scenario.batch_full};
  if (cv_cobroker_store_open(&files, &world->ring_cobroker, &self->store, why) != CV_OK) {
    return false;
  }
  cv_rng_seeded_init(&self->noise, world->scenario.seed, 95, 3, party->life);
  cv_rng_seeded_init(&self->key, world->scenario.seed, 95, 4, party->life);
  configure(party, &config);
  CV_REQUIRE(cv_cobroker_new(&config, &self->core) == CV_OK);
  if (cv_cobroker_store_load(self->store, self->core, party_mono_ms(party), world_wall_ms(world), why) != CV_OK) {
    return false;
  }
  two_restarted(world->two, self->core);
  party_after(party, TICK_MS, TIMER_TICK);
  turn_soon(party);
  return true;
}

static void stop(struct party *party) {
  struct self *self = party->self;
  cv_cobroker_free(self->core);
  cv_cobroker_store_close(self->store);
  cv_cobroker_batch_fini(&self->batch);
  for (struct cable *cable = party->world->cables; cable != NULL; cable = cable->next) {
    for (int i = 0; i < 2; i++) {
      if (cable->end[i].party == party) {
        free(cable->end[i].data);
        cable->end[i].data = NULL;
      }
    }
  }
  free(self);
}

const struct party_ops party_cobroker = {
    .start = start, .stop = stop, .opened = opened, .frame = frame, .closed = closed, .timer = timer};
