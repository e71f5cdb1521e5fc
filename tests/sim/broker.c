/* SPDX-License-Identifier: Apache-2.0 */
/* The broker: its core, store and turn as in broker/shell.c, with a simulated network and clock. */
#include <stdlib.h>
#include <string.h>

#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/core.h"
#include "broker/fetch.h"
#include "broker/state.h"
#include "broker/store.h"
#include "broker/workers.h"
#include "common/daemon/turn.h"
#include "tests/sim/cobroker.h"
#include "tests/sim/lies.h"
#include "tests/sim/mix.h"
#include "tests/sim/net.h"
#include "tests/sim/peers.h"
#include "tests/sim/rotation.h"
#include "tests/sim/standby.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"
#include "tests/sim/two.h"

enum { TIMER_TURN, TIMER_COMMIT, TIMER_PACE, TIMER_TICK, TIMER_READ, TICK_MS = 50 };

struct self {
  struct cv_broker *core;
  struct cv_broker_store *store;
  struct cv_broker_batch batch;
  struct cv_turn turn;
  struct cv_fetched fetched; /* an ended campaign, with what reading it has come to */
  enum cv_err read_err;
  struct cv_why read_why;
  struct standby *standby; /* NULL: the database is its own */
  struct cv_rng_seeded noise;
  bool serves, stores; /* core and store are open; the batch being stored has rows */
  bool turning, draining;
  bool rekeys;        /* is to wrap its keys anew */
  uint32_t farewells; /* deliveries since the request to stop */
  uint64_t drain_until_ms;
};

struct wire {
  struct end *end;
  struct cv_broker_conn *conn;
  enum cv_schema schema;
};

static const struct cv_wire *const codecs[] = {[CV_SCHEMA_CROWD] = &CV_CROWD_WIRE,
                                               [CV_SCHEMA_RANK] = &CV_RANK_WIRE,
                                               [CV_SCHEMA_ORDER] = &CV_ORDER_WIRE,
                                               [CV_SCHEMA_SHARE] = &CV_SHARE_WIRE};

/* A frame of any schema. */
union frame {
  struct cv_crowd_frame crowd;
  struct cv_rank_frame rank;
  struct cv_order_frame order;
  struct cv_share_frame share;
};

static enum cv_err tag(void *data, const void *bytes, size_t bytes_n, uint8_t *to, size_t n) {
  return cv_mac_tag(data, bytes, bytes_n, to, n);
}

/* What one of two brokers says to itself is true only of the one in the latest term. */
static bool is_late(const struct party *party) {
  return party->world->server != NULL && party->world->active != party;
}

static void note(void *data, const struct cv_note *note) {
  lies_noted(data, note);
  if (strstr(note->text, "token refused") == NULL) { /* liars have many tokens refused */
    world_log(data, "broker: %s%s%s", note->peer != NULL ? note->peer : "", note->peer != NULL ? ": " : "", note->text);
  }
}

/* ---- out ---- */

static void drop(struct wire *wire) {
  net_close(wire->end);
}

static void leave(struct self *self, struct wire *wire) {
  if (wire->conn != NULL) {
    cv_broker_leave(self->core, wire->conn);
    wire->conn = NULL;
  }
}

static void send(const struct wire *wire, const void *frame) {
  net_send_frame(wire->end, codecs[wire->schema], frame);
}

/* 1: a broker whose term is over says nothing of a token that only a later term can have asked for. */
static void check_late(const struct party *party, const struct cv_crowd_frame *frame) {
  const struct self *self = party->self;
  for (size_t i = 0; i < frame->acks && is_late(party); i++) {
    struct cv_ticket ticket;
    if (cv_ticket_open(frame->ack[i].ticket, world_tagger(party->world), &ticket) == CV_OK) {
      const struct cv_broker_campaign *campaign = cv_broker_campaign_find(self->core, ticket.campaign);
      if (campaign != NULL ? ticket.plan > campaign->plans : ticket.campaign > self->core->totals.campaigns) {
        world_fail(party->world, "1: a broker whose term is over answers about a ticket of a later one");
      }
    }
  }
}

static void tell(struct world *world, const struct wire *wire, const struct cv_broker_out *out) {
  if (out->schema == CV_SCHEMA_CROWD) {
    truth_told_crowd(world->truth, out->frame.crowd);
    check_late(wire->end->party, out->frame.crowd);
    peers_told(wire->end, out->frame.crowd);
  } else if (out->schema == CV_SCHEMA_RANK && wire->end->other->party == world->impostor) {
    if (!is_late(wire->end->party)) { /* it cannot know who has opened a campaign since, and stores no answer */
      truth_told_impostor(world->truth, out->frame.rank);
    }
  } else if (out->schema == CV_SCHEMA_RANK) {
    truth_told_rank(world->truth, out->frame.rank);
  } else if (out->schema == CV_SCHEMA_SHARE) {
    two_told_cobroker(world->two, out->frame.share);
    lies_send(world, wire->end, out->frame.share);
    return;
  }
  send(wire, out->frame.any);
}

/* As in common/daemon/lane.c: the peer receives the reason. */
static void reject(struct world *world, struct wire *wire, const struct cv_why *why) {
  union frame frame;
  world_log(world, "broker: %s cannot join: %s", wire->end->other->party->identity.name, why->text);
  codecs[wire->schema]->goodbye(why->text, "broker", &frame);
  send(wire, &frame);
  drop(wire);
}

/* Leaves the core for a closed connection, at an event of its own: the core may be running when the connection
 * closes. */
static void forget(struct world *world, struct event *event) {
  struct wire *wire = event->about;
  leave(event->party->self, wire);
}

/* What was gathered before the request to stop, and what was in flight to the disk, may still leave. */
static void check_farewell(const struct party *party, const struct cv_broker_out *out) {
  const struct self *self = party->self;
  if (self->farewells > 2 && out->schema == CV_SCHEMA_CROWD && out->frame.crowd->assigns > 0) {
    world_fail(party->world, "the broker was asked to stop, and assigns");
  }
}

static void deliver(struct party *party) {
  struct self *self = party->self;
  struct cv_broker_out out;
  self->farewells += self->draining && self->standby == NULL;
  while (party_step(party) && cv_broker_next_out(self->core, &out)) {
    struct wire *wire = cv_broker_conn_shell(out.conn);
    if (!wire->end->open) {
      continue;
    }
    check_farewell(party, &out);
    tell(party->world, wire, &out);
    if (out.close) {
      drop(wire);
      world_at(party->world, 0, forget, party, wire, 0);
    }
  }
}

/* ---- the turn ---- */

static bool is_pending(void *data) {
  struct party *party = data;
  const struct self *self = party->self;
  return self->serves && cv_broker_is_pending(self->core) && party_step(party);
}

/* Wraps the keys anew; the broker may die before, in between or after. */
static void rekey(struct party *party) {
  struct self *self = party->self;
  struct cv_why why;
  self->rekeys = false;
  if (!party_step(party)) {
    return;
  }
  if (cv_vault_rekey(cv_broker_store_vault(self->store), &party->world->ring, &why) != CV_OK) {
    cv_turn_fail(&self->turn, "cannot wrap the keys anew", &why);
  } else if (party_step(party)) {
    rotation_wrapped(party->world);
  }
}

/* What was read of an ended campaign: who waited for it may be gone meanwhile. */
static void restore(struct party *party) {
  struct self *self = party->self;
  enum cv_err err = self->read_err;
  bool is_awaited = cv_broker_awaits(self->core, self->fetched.campaign);
  tally(is_awaited ? TALLY_FETCHED : TALLY_NOT_AWAITED);
  if (err == CV_OK && is_awaited) {
    err = cv_broker_store_restore(self->core, &self->fetched, &self->read_why);
  }
  if (err == CV_ERR_DAMAGED) {
    world_fail(party->world, "15: campaign %u has ended and cannot be read: %s", self->fetched.campaign,
               self->read_why.text);
  } else if (err != CV_OK) {
    cv_turn_fail(&self->turn, "cannot read", &self->read_why);
  }
  cv_fetched_fini(&self->fetched);
}

/* The server answers late, and a requester may not wait for so long, in worlds where requesters crash at all. */
static uint64_t read_ms(struct world *world) {
  struct party *requester = world->requester[world_below(world, world->scenario.requesters)];
  bool is_late = world_chance(world, 20), leaves = is_late && world->scenario.weight[FAULT_CRASH_REQUESTER] > 0;
  requester->dead = requester->dead || (leaves && requester->up && world_chance(world, 30));
  return 1 + world_below(world, is_late ? 3000 : 20);
}

/* Reads an ended campaign for a requester that waits for it. */
static void fetch(struct party *party) {
  struct self *self = party->self;
  if (party->exits || !cv_broker_wanted(self->core, &self->fetched.campaign)) {
    return;
  }
  self->read_err = cv_broker_store_read(self->store, self->fetched.campaign, &self->fetched, &self->read_why);
  if (self->standby != NULL && cv_turn_take(&self->turn)) {
    party_after(party, read_ms(party->world), TIMER_READ);
  } else {
    restore(party);
  }
}

static void between(void *data) {
  struct party *party = data;
  const struct self *self = party->self;
  if (self->rekeys) {
    rekey(party);
  } else if (self->serves) {
    fetch(party);
  }
}

struct cv_broker_campaign *broker_campaign(const struct party *broker, uint32_t id) {
  const struct self *self = broker->self;
  const struct cv_ended *ended = cv_archive_find(&self->core->archive, id);
  struct cv_why why;
  if (cv_broker_campaign_find(self->core, id) == NULL && ended != NULL && !ended->purged) {
    CV_REQUIRE(cv_broker_store_fetch(self->store, self->core, id, &why) == CV_OK);
  }
  return cv_broker_campaign_find(self->core, id);
}

static size_t gathered(void *data) {
  const struct party *party = data;
  const struct self *self = party->self;
  return cv_broker_gathered(self->core);
}

static enum cv_err flush(void *data, bool *ret_store) {
  struct party *party = data;
  struct self *self = party->self;
  party_enter(party);
  enum cv_err err =
      cv_broker_flush(self->core, party_mono_ms(party), world_wall_ms(party->world), &self->batch, ret_store);
  party_leave(party);
  if (party->exits) {
    return CV_ERR_NOMEM;
  }
  CV_REQUIRE(err == CV_OK);
  self->stores = *ret_store;
  if (!is_late(party)) {
    truth_flushed(party->world->truth, self->core);
  }
  return CV_OK;
}

static void count_batch(const struct cv_broker_batch *batch) {
  tally(TALLY_COMMITS_BROKER);
  for (size_t i = 0; i < batch->ops; i++) {
    tally_add(TALLY_FOLDS, batch->op[i].kind == CV_OP_TRIM);
    tally_add(TALLY_FORGOTTEN, batch->op[i].kind == CV_OP_FORGET);
  }
}

/* The broker may die before or after the commit; either counts as a failure. */
static enum cv_err commit(void *data, struct cv_why *why) {
  struct party *party = data;
  struct self *self = party->self;
  if (!party_step(party)) {
    return cv_fail(why, CV_ERR_IO, "it dies");
  }
  CV_TRY(cv_broker_store_commit(self->store, &self->batch, why));
  world_log(party->world, "broker: commit %llu, %zu operations", (unsigned long long)self->batch.commit,
            self->batch.ops);
  count_batch(&self->batch);
  if (!party_step(party)) {
    return cv_fail(why, CV_ERR_IO, "it dies");
  }
  if (is_late(party)) {
    world_fail(party->world, "2: a broker whose term is over has stored a commit");
  }
  truth_stored(party->world->truth, self->batch.commit);
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

static void committed(struct party *party) {
  struct self *self = party->self;
  struct cv_why why;
  if (self->standby != NULL && standby_is_silent(self->standby)) {
    tally(TALLY_SILENT);
    party_after(party, TICK_MS, TIMER_COMMIT);
    return;
  }
  enum cv_err err = commit(party, &why);
  cv_turn_committed(&self->turn, err, &why);
}

static bool is_quick(void *data) {
  const struct party *party = data;
  return party->world->server == NULL && world_chance(party->world, 60);
}

static void say(void *data) {
  struct party *party = data;
  struct self *self = party->self;
  cv_broker_stored(self->core);
  if (self->standby != NULL && self->stores) {
    standby_stored(self->standby);
  }
  deliver(party);
}

static void pace(void *data) {
  struct party *party = data;
  tally(TALLY_PACED);
  party_after(party, 1 + world_below(party->world, 8), TIMER_PACE);
}

static void on_failure(void *data, const char *what, const struct cv_why *why) {
  struct party *party = data;
  world_log(party->world, "broker: %s: %s", what, why->text);
  party->exits = party->exits || !party->dead;
}

static const struct cv_turn_ops turn_ops = {.between = between,
                                            .is_pending = is_pending,
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

void broker_rekey(struct party *party) {
  struct self *self = party->self;
  self->rekeys = true;
  turn_soon(party);
}

/* ---- the end ---- */

void broker_drain(struct party *party) {
  struct self *self = party->self;
  if (party->up && !self->draining) {
    world_log(party->world, "fault: broker %u is asked to stop", party->number);
    self->draining = true;
    self->drain_until_ms = party_mono_ms(party) + party->world->scenario.lease_ms;
    if (self->standby == NULL) {
      cv_broker_drain(self->core);
    }
    tally_add(TALLY_STOPPED_WORKING, self->standby != NULL && cv_turn_is_busy(&self->turn));
  }
}

/* Another broker goes on: only what is gathered is stored. */
static void hand_over_if_stored(struct party *party) {
  struct self *self = party->self;
  bool is_stored = !self->serves || !cv_broker_is_pending(self->core);
  if (cv_turn_is_busy(&self->turn) || !(is_stored || party_mono_ms(party) >= self->drain_until_ms)) {
    return;
  }
  tally_add(TALLY_HANDED_OVER, self->serves);
  standby_leave(self->standby);
  party->exits = true;
}

static void stop_if_drained(struct party *party) {
  struct self *self = party->self;
  bool can_stop = self->draining && !cv_turn_is_busy(&self->turn);
  if (self->draining && self->standby != NULL) {
    hand_over_if_stored(party);
    return;
  }
  bool drained = can_stop && cv_broker_is_drained(self->core);
  if (drained || (can_stop && party_mono_ms(party) >= self->drain_until_ms)) {
    tally_add(TALLY_DRAINED, drained);
    if (drained && self->core->changed) {
      world_fail(party->world, "the broker was asked to stop, and stops with answers that it has not stored");
    }
    party->exits = true;
  }
}

static void tick(struct party *party) {
  struct self *self = party->self;
  if (self->serves) {
    party_enter(party);
    cv_broker_tick(self->core, party_mono_ms(party), world_wall_ms(party->world));
    party_leave(party);
    if (party->exits) {
      return;
    }
    if (!is_late(party)) {
      truth_ticked(party->world->truth, self->core);
    }
    turn_soon(party);
  }
  if (self->standby != NULL) {
    standby_tick(self->standby);
  }
  party_after(party, TICK_MS, TIMER_TICK);
  stop_if_drained(party);
}

static void timer(struct party *party, int which) {
  struct self *self = party->self;
  switch (which) {
    case TIMER_COMMIT:
      committed(party);
      return;
    case STANDBY_WORK:
    case STANDBY_WORKED:
      standby_timer(self->standby, which);
      return;
    case TIMER_READ:
      restore(party);
      cv_turn_give_back(&self->turn);
      return;
    case TIMER_PACE:
      cv_turn_paced(&self->turn);
      return;
    case TIMER_TICK:
      tick(party);
      return;
    default:
      self->turning = false;
      cv_turn_over(&self->turn);
      return;
  }
}

/* ---- in ---- */

static void opened(struct party *party, struct end *end) {
  struct self *self = party->self;
  struct wire *wire = calloc(1, sizeof(*wire));
  struct cv_why why;
  CV_REQUIRE(wire != NULL);
  enum cv_role role = end->other->party->identity.role;
  *wire = (struct wire){.end = end,
                        .schema = role == CV_ROLE_THIRDPARTY  ? CV_SCHEMA_RANK
                                  : role == CV_ROLE_COBROKER  ? CV_SCHEMA_SHARE
                                  : role == CV_ROLE_REQUESTER ? CV_SCHEMA_ORDER
                                                              : CV_SCHEMA_CROWD};
  end->data = wire;
  party_enter(party);
  enum cv_err err = cv_broker_join(self->core, &end->other->party->identity, wire, &wire->conn, &why);
  party_leave(party);
  if (party->exits) {
    return;
  }
  truth_joined(party->world->truth, self->core, &end->other->party->identity, err == CV_OK);
  peers_joined(end->other->party, err == CV_OK);
  if (err != CV_OK) {
    reject(party->world, wire, &why);
  }
  turn_soon(party);
}

static enum cv_err take_crowd(struct party *party, struct wire *wire, const struct cv_crowd_frame *frame,
                              struct cv_why *why) {
  struct self *self = party->self;
  const struct cv_crowd_frame *answers = &wire->conn->workers->gather.frame;
  size_t before = answers->acks;
  enum cv_err err =
      cv_broker_on_crowd(self->core, wire->conn, frame, party_mono_ms(party), world_wall_ms(party->world), why);
  if (cv_broker_is_overtaken(self->core)) {
    const struct cv_why reason = {.text = "a worker has a ticket of a later term"};
    tally(TALLY_OVERTAKEN);
    cv_turn_fail(&self->turn, "the term is over", &reason);
  }
  if (!is_late(party)) {
    truth_counted(party->world->truth, answers, before, frame->token);
  }
  return err;
}

static enum cv_err take(struct party *party, struct wire *wire, const uint8_t *bytes, size_t n, struct cv_why *why) {
  struct world *world = party->world;
  struct self *self = party->self;
  uint64_t now_ms = party_mono_ms(party), wall_ms = world_wall_ms(world);
  union frame frame;
  CV_TRY(codecs[wire->schema]->decode(bytes, n, &world->decoding, &frame));
  switch (wire->schema) {
    case CV_SCHEMA_CROWD:
      return take_crowd(party, wire, &frame.crowd, why);
    case CV_SCHEMA_RANK:
      return cv_broker_on_rank(self->core, wire->conn, &frame.rank, now_ms, why);
    case CV_SCHEMA_SHARE:
      return cv_broker_on_share(self->core, wire->conn, &frame.share, now_ms, wall_ms, why);
    default:
      return cv_broker_on_order(self->core, wire->conn, &frame.order, now_ms, wall_ms, why);
  }
}

static void frame(struct party *party, struct end *end, const uint8_t *bytes, size_t n) {
  struct self *self = party->self;
  struct wire *wire = end->data;
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
    world_log(party->world, "broker: %s broke the protocol: %s", peer->identity.name, why.text);
    tally(TALLY_REFUSED_FRAME);
    lies_blamed(party->world, peer, why.text);
    if (!peer->hostile && !party->world->rolled_back && !party->world->lied && !is_late(party)) {
      world_fail(party->world, "the broker closes on %s, which is honest: %s", peer->identity.name, why.text);
    }
    drop(wire);
    leave(self, wire);
  }
  turn_soon(party);
}

static void closed(struct party *party, struct end *end) {
  leave(party->self, end->data);
  turn_soon(party);
}

/* ---- loading ---- */

/* The database has a random key of tickets; here it is the same in every run. */
const struct cv_tagger *world_tagger(struct world *world) {
  static struct cv_tagger tagger = {.tag = tag};
  static struct cv_mac *mac;
  const struct cv_key tickets = {{0x5a}};
  CV_REQUIRE(mac != NULL || cv_mac_new(&tickets, &mac) == CV_OK);
  tagger.data = mac;
  return &tagger;
}

struct broker_anchor broker_anchor(const struct party *broker) {
  return (struct broker_anchor){.path = {broker->disk->letter, '/', 'a', 'n', 'c', 'h', 'o', 'r'}};
}

struct party *world_broker(const struct world *world) {
  struct party *party = world->server == NULL ? world->broker : world->active;
  return party != NULL && party->up ? party : NULL;
}

struct cv_broker *broker_core(const struct party *broker) {
  const struct self *self = broker->self;
  return self->core;
}

static void configure(struct party *party, struct cv_broker_config *ret) {
  struct self *self = party->self;
  const struct scenario *scenario = &party->world->scenario;
  *ret = (struct cv_broker_config){
      .name = "broker",
      .limits = {.epsilon_micro = 10000000,
                 .delta_pico = scenario->applied.law.delta_pico,
                 .worker_epsilon_micro = scenario->worker_epsilon_micro,
                 .trusted_thirdparty = scenario_is_exact(scenario),
                 .release_tokens = scenario->release_tokens,
                 .arms = SCENARIO_ARMS,
                 .campaigns = 4, /* more than a requester has open */
                 .kept = scenario->kept,
                 .tokens = 100000,
                 .chunks = 64,
                 .lease_ms = scenario->lease_ms,
                 .queue = scenario->queue},
      .tagger = *world_tagger(party->world),
      .digest = cv_sha256,
      .duo = world_duo(party->world),
      .noise = &self->noise.rng,
      .noise_seeded = scenario->noise_seeded,
      .noise_seed = scenario->seed,
      .journal_bytes = scenario->journal_bytes,
      .note = note,
      .note_data = party->world,
  };
}

static void name_database(const struct self *self, struct cv_broker_config *config) {
  _Static_assert((int)CV_SPLIT_DATABASE_BYTES == (int)CV_DATABASE_ID_BYTES, "one size");
  memcpy(config->database, cv_broker_store_id(self->store), sizeof(config->database));
}

static void count_restart(const struct cv_broker *core) {
  for (const struct cv_broker_campaign *campaign = core->open; campaign != NULL; campaign = campaign->next_open) {
    if (campaign->payers.all != NULL && campaign->payers.all->written > 0) {
      tally(TALLY_FOLDED_RESTARTS);
      return;
    }
  }
}

/* For the truth: the accounts of an ended campaign's arms are on disk only. */
static bool fetch_ended(struct self *self, struct cv_why *why) {
  for (const struct cv_ended *ended = self->core->archive.all; ended != NULL; ended = ended->hh.next) {
    if (!ended->purged && cv_broker_store_fetch(self->store, self->core, ended->id, why) != CV_OK) {
      return false;
    }
  }
  return true;
}

/* Makes the core and loads it from the open store. */
static enum cv_err load(struct party *party, struct cv_why *why) {
  struct world *world = party->world;
  struct self *self = party->self;
  struct cv_broker_config config;
  configure(party, &config);
  name_database(self, &config);
  config.term = cv_broker_store_term(self->store);
  CV_REQUIRE(cv_broker_new(&config, &self->core) == CV_OK);
  CV_TRY(cv_broker_store_load(self->store, self->core, party_mono_ms(party), world_wall_ms(world), why));
  return !world->recovered || fetch_ended(self, why) ? CV_OK : CV_ERR_IO;
}

static void serve(struct party *party) {
  struct self *self = party->self;
  self->serves = true;
  count_restart(self->core);
  turn_soon(party);
}

/* ---- two brokers and one database ---- */

/* From here on only this broker's word counts, though it is not yet there to say it. */
static enum cv_err load_shared(struct party *party, struct cv_broker_store *store, struct cv_why *why) {
  struct self *self = party->self;
  struct world *world = party->world;
  self->store = store;
  cv_rng_seeded_init(&self->noise, world->scenario.seed, 77, 3, mix_last());
  truth_drew(world->truth, cv_rng_u64(&self->noise.rng));
  if (!rotation_check_tickets(world, self->store, why)) {
    return CV_ERR_IO;
  }
  CV_TRY(load(party, why));
  if (standby_is_latest(self->standby)) {
    world->active = party;
    truth_restarted(world->truth, self->core);
  }
  return CV_OK;
}

static void unload_shared(struct party *party) {
  struct self *self = party->self;
  cv_broker_free(self->core);
  cv_broker_store_close(self->store);
  self->core = NULL;
  self->store = NULL;
}

static void begin_serving(struct party *party) {
  party->listens = true;
  party->stays_away = false;
  net_started(party);
  serve(party);
}

static enum cv_err stand_by(struct party *party, struct cv_why *why) {
  static const struct standby_ops ops = {.load = load_shared, .unload = unload_shared, .active = begin_serving};
  struct self *self = party->self;
  party->listens = false;
  party->stays_away = true;
  return standby_open(party, &self->turn, &ops, &self->standby, why);
}

struct standby *broker_standby(const struct party *broker) {
  const struct self *self = broker->self;
  return self->standby;
}

/* ---- start and end ---- */

static bool start(struct party *party, struct cv_why *why) {
  struct world *world = party->world;
  struct self *self = calloc(1, sizeof(*self));
  const struct cv_store_files files = {.database = "B/broker.db", .anchor = "B/anchor", .vfs = CV_SIM_VFS};
  CV_REQUIRE(self != NULL);
  party->self = self;
  self->turn = (struct cv_turn){
      .ops = &turn_ops, .data = party, .crowd = world->scenario.batch_crowd, .full = world->scenario.batch_full};
  party_after(party, TICK_MS, TIMER_TICK);
  if (world->server != NULL) {
    return stand_by(party, why) == CV_OK;
  }
  cv_rng_seeded_init(&self->noise, world->scenario.seed, 77, 3, party->life);
  if (cv_broker_store_open(&files, &world->ring, &self->store, why) != CV_OK ||
      !rotation_check_tickets(world, self->store, why) || load(party, why) != CV_OK) {
    return false;
  }
  truth_restarted(world->truth, self->core);
  serve(party);
  return true;
}

static void free_wires(struct party *party) {
  for (struct cable *cable = party->world->cables; cable != NULL; cable = cable->next) {
    for (int i = 0; i < 2; i++) {
      if (cable->end[i].party == party) {
        free(cable->end[i].data);
        cable->end[i].data = NULL;
      }
    }
  }
}

static void stop(struct party *party) {
  struct self *self = party->self;
  cv_broker_free(self->core);
  cv_broker_store_close(self->store);
  if (self->standby != NULL) { /* a machine that loses power says nothing to the server */
    standby_close(self->standby, party->world->calm_ms == 0 && world_chance(party->world, 30));
  }
  if (party->world->active == party) {
    party->world->active = NULL;
  }
  cv_broker_batch_fini(&self->batch);
  cv_fetched_fini(&self->fetched);
  free_wires(party);
  free(self);
}

const struct party_ops party_broker = {
    .start = start, .stop = stop, .opened = opened, .frame = frame, .closed = closed, .timer = timer};
