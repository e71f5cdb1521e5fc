/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core with the real store, on virtual time, with a scripted third-party and a scripted crowd. Releases are
 * compared with exact sums and a mechanism of the test's own. Include after cmocka.h.
 *
 * A test may let allocations fail inside the core: then the process has died, no event reaches it any more, and the
 * next turn starts another one with the same database.
 */
#ifndef CV_TESTS_BROKER_WORLD_H
#define CV_TESTS_BROKER_WORLD_H

#include "broker/conn.h"
#include "broker/core.h"
#include "broker/fetch.h"
#include "broker/state.h"
#include "broker/store.h"
#include "common/base/grid.h"
#include "proto/codec/chain.h"
#include "tests/support/mechanism.h"
#include "tests/unit/broker/stored.h"

/* With WORLD_GRAPH the arms are the path 0 - 1 - 2, and plans differ in the arms that they name and play. */
#ifndef WORLD_GRAPH
#define WORLD_GRAPH false
#endif
/* With WORLD_HIRES each arm is a worker that is paid. */
#ifndef WORLD_HIRES
#define WORLD_HIRES false
#endif
/* With WORLD_PAIRS tokens are comparisons, and every second plan names the opponents. */
#ifndef WORLD_PAIRS
#define WORLD_PAIRS false
#endif
/* With WORLD_TWO there are two brokers: tokens are shares, and a co-broker (cobroker.h) has the other ones. */
#ifndef WORLD_TWO
#define WORLD_TWO false
#endif
#ifndef WORLD_PLANS
#define WORLD_PLANS 5
#define WORLD_TAU   40
#endif

enum {
  ARMS = 3,
  TAU = WORLD_TAU,
  PLANS = WORLD_PLANS,
  RELEASES = ARMS * PLANS,
  QUEUE = 4096,
  NOISE_SEED = 9,
  LEASE_MS = 1000,
  FIRST_HIRED = 11
};

#include "tests/unit/broker/cobroker.h"

static struct cv_edge edge_of_test[] = {{0, 1}, {1, 2}};
static uint64_t cost_of_test[ARMS] = {1000000, 2000000, 1500000},
                hired[ARMS] = {FIRST_HIRED, FIRST_HIRED + 1, FIRST_HIRED + 2};

static inline bool are_neighbours(uint32_t a, uint32_t b) {
  return WORLD_GRAPH && (a + 1 == b || b + 1 == a);
}

/* The value of a place: known to the test, in grid units. */
static inline int64_t value_of(uint32_t arm, uint64_t place) {
  uint64_t drawn = cv_mix64(1 + arm + 1000 * place);
  return WORLD_TWO     ? (int64_t)(drawn % (CV_PRIO_MAX_MEASUREMENT + 1) * cv_split_scale(CV_SPLIT_SCORE))
         : WORLD_PAIRS ? (int64_t)(drawn % 2) * CV_GRID
                       : (int64_t)(drawn % (CV_GRID + 1));
}

/* What a play of one arm at this place shows of another, or of itself. */
static inline int64_t value_shown(uint32_t played, uint64_t place, uint32_t arm) {
  return value_of(arm, played == arm ? place : place + 1000000 * (played + 1));
}

/* The wants of plan `number`; returns how many arms it names. */
static inline uint32_t wants_of(uint64_t number, struct cv_want want[ARMS]) {
  static const struct cv_want graph[][ARMS] = {
      {{0, 0}, {1, TAU}, {2, 0}},       /* the middle arm shows all */
      {{2, TAU / 2}, {1, 0}, {0, TAU}}, /* both ends show it */
      {{0, TAU}, {2, TAU}},             /* no arm shows another */
      {{1, TAU / 2}, {0, 0}, {2, TAU}}, /* the middle arm's view of the left one is complete before its own epoch */
  };
  for (uint32_t i = 0; i < ARMS; i++) {
    want[i] = WORLD_GRAPH ? graph[number % 4][i] : (struct cv_want){.arm = i, .tokens = TAU};
    want[i].opponent = WORLD_PAIRS && number % 2 == 0 ? 1 + (i + 1) % ARMS : 0;
  }
  return WORLD_GRAPH && number % 4 == 2 ? 2 : ARMS;
}

/* Releases of the first plans, up to this number. */
static inline uint64_t releases_by(uint64_t plans) {
  struct cv_want want[ARMS];
  uint64_t releases = 0;
  for (uint64_t i = 1; i <= plans; i++) {
    releases += wants_of(i, want);
  }
  return releases;
}

/* Scores that the whole script shows. */
static inline uint64_t scores_shown(void) {
  uint64_t scores = 0;
  for (uint64_t plan = 1; plan <= PLANS; plan++) {
    struct cv_want want[ARMS];
    uint32_t wants = wants_of(plan, want);
    for (uint32_t i = 0; i < wants; i++) {
      for (uint32_t j = 0; j < wants; j++) {
        scores += i == j || are_neighbours(want[i].arm, want[j].arm) ? want[i].tokens : 0;
      }
    }
  }
  return scores;
}

/* What the script's hires cost. */
static inline uint64_t wages(void) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < ARMS; i++) {
    all += PLANS * TAU * cost_of_test[i];
  }
  return all;
}

struct token {
  uint8_t ticket[CV_TICKET_BYTES];
  size_t values;
  int64_t value, more[ARMS];   /* the first, and those after it */
  struct cv_token_share share; /* with two brokers; `leader` is set when it is sent */
  uint8_t leader[CV_SPLIT_LEADER_MOST];
};

/* The third-party's state, over the broker's restarts. */
struct thirdparty {
  uint64_t releases, plans; /* applied; accepted */
  struct cv_digest releases_hash, plans_hash;
  struct cv_release release[RELEASES + 1]; /* by number */
  bool closed;
};

struct world {
  struct folder folder;
  struct cv_mac *mac;
  struct cv_broker_store *store;
  struct cv_remote *remote; /* with WORLD_POSTGRES: its session */
  struct cv_broker *core;
  struct cv_broker_batch batch;
  struct cv_broker_conn *crowd, *rank, *order, *share;
  struct fake_cobroker cobroker;          /* with WORLD_TWO */
  struct cv_terms terms;                  /* of the campaign, as workers know them */
  void (*on_commit)(struct world *world); /* after each; may be NULL */
  void *disk;                             /* for it */
  struct thirdparty thirdparty;
  struct token unacked[QUEUE]; /* sent or to be sent, until acknowledged */
  size_t unacked_count;
  uint32_t opponent[ARMS][PLANS * TAU]; /* of each place, as first assigned */
  uint64_t next_worker, now_ms, verdicts[5], backoffs, commits;
  uint64_t worker_epsilon_micro, journal_bytes; /* the setting, from the next start on */
  uint64_t retention_ms;
  uint32_t kept, submits;
  void (*starve)(void), (*feed)(void); /* around every call of the core; NULL: no allocation fails */
  void (*starve_store)(void);          /* the same for calls of the store */
  bool died;
};

static inline void starve(const struct world *world) {
  if (world->starve != NULL) {
    world->starve();
  }
}

/* True if the core lives. A core that has died returns the same error from then on, for every call, and sends
 * nothing. */
static inline bool lives(struct world *world, enum cv_err err, const struct cv_why *why) {
  if (world->starve != NULL) {
    world->feed();
  }
  if (world->starve == NULL || err != CV_ERR_NOMEM) {
    if (err != CV_OK) {
      fail_msg("%s", why->text);
    }
    return true;
  }
  struct cv_broker_out out;
  struct cv_why again = {.text = ""};
  struct cv_broker_conn *conn = NULL;
  bool store;
  assert_string_equal(why->text, "out of memory");
  assert_true(cv_broker_is_pending(world->core));
  assert_false(cv_broker_next_out(world->core, &out));
  assert_int_equal(cv_broker_flush(world->core, 1, 1, &world->batch, &store), CV_ERR_NOMEM);
  assert_int_equal(cv_broker_join(world->core, &(struct cv_identity){0}, NULL, &conn, &again), CV_ERR_NOMEM);
  assert_string_equal(again.text, "out of memory");
  assert_null(conn);
  world->died = true;
  world->starve = NULL;
  return false;
}

static inline enum cv_err tag(void *data, const void *bytes, size_t bytes_n, uint8_t *to, size_t n) {
  return cv_mac_tag(data, bytes, bytes_n, to, n);
}

static const struct cv_identity gateway = {.role = CV_ROLE_GATEWAY, .name = "1-1000000", .first = 1, .last = 1000000};
static const struct cv_identity thirdparty = {.role = CV_ROLE_THIRDPARTY, .name = "t"};
static const struct cv_identity requester = {.role = CV_ROLE_REQUESTER, .name = "r"};
static const struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION};

static inline struct cv_spec spec_of_test(void) {
  struct cv_spec spec = {.name = "test",
                         .arms = ARMS,
                         .policy.name = "scripted",
                         .mechanism.name = "hybrid",
                         .privatizer.name = "none",
                         .epsilon_micro = 500000,
                         .tokens_per_worker = 2,
                         .repeat = WORLD_GRAPH,
                         .tokens = (uint64_t)PLANS * ARMS * TAU,
                         .idle_ms = 60000,
                         .pairs = WORLD_PAIRS,
                         .brokers = WORLD_TWO ? 2 : 0,
                         .score_bits = WORLD_TWO ? CV_SPLIT_SCORE : 0,
                         .edges = WORLD_GRAPH ? CV_COUNT(edge_of_test) : 0,
                         .edge = WORLD_GRAPH ? edge_of_test : NULL};
  if (WORLD_HIRES) {
    spec.cost_micro = cost_of_test;
    spec.worker = hired;
    spec.budget_micro = wages();
    spec.tokens_per_worker = (uint32_t)(wages() / cost_of_test[0]);
  }
  return spec;
}

static inline void say(struct world *world, struct cv_broker_conn *conn, const struct cv_crowd_frame *frame) {
  struct cv_why why;
  if (!world->died) {
    starve(world);
    (void)lives(world, cv_broker_on_crowd(world->core, conn, frame, world->now_ms, world->now_ms, &why), &why);
  }
}

static inline void answer(struct world *world, const struct cv_rank_frame *frame) {
  struct cv_why why;
  if (!world->died) {
    starve(world);
    (void)lives(world, cv_broker_on_rank(world->core, world->rank, frame, world->now_ms, &why), &why);
  }
}

static inline void send_tokens(struct world *world) {
  for (size_t i = 0; i < world->unacked_count; i++) {
    int64_t value[1 + ARMS] = {world->unacked[i].value};
    memcpy(value + 1, world->unacked[i].more, sizeof(world->unacked[i].more));
    struct cv_token_share share = world->unacked[i].share;
    share.leader = world->unacked[i].leader;
    struct cv_token token = {.values = world->unacked[i].values, .value = value, .share = WORLD_TWO ? &share : NULL};
    memcpy(token.ticket, world->unacked[i].ticket, sizeof(token.ticket));
    say(world, world->crowd, &(struct cv_crowd_frame){.tokens = 1, .token = &token});
  }
}

static inline void say_share(struct world *world, const struct cv_share_frame *frame) {
  struct cv_why why;
  if (!world->died && world->share != NULL) {
    starve(world);
    (void)lives(world, cv_broker_on_share(world->core, world->share, frame, world->now_ms, world->now_ms, &why), &why);
  }
}

/* Connects the co-broker. */
static inline void connect_share(struct world *world) {
  const struct cv_identity identity = {.role = CV_ROLE_COBROKER, .name = "c", .key = fake_duo.cobroker};
  struct cv_why why;
  if (!world->died) {
    starve(world);
    (void)lives(world, cv_broker_join(world->core, &identity, NULL, &world->share, &why), &why);
    say_share(world, &(struct cv_share_frame){.hello = hello});
  }
}

/* Connects every peer: the first time and after each restart. */
static inline void connect_all(struct world *world) {
  world->share = NULL;
  const struct cv_identity *const identity[] = {&thirdparty, &gateway, &requester};
  struct cv_broker_conn **const conn[] = {&world->rank, &world->crowd, &world->order};
  struct cv_why why;
  for (size_t i = 0; i < CV_COUNT(identity) && !world->died; i++) {
    starve(world);
    (void)lives(world, cv_broker_join(world->core, identity[i], NULL, conn[i], &why), &why);
  }
  if (WORLD_TWO) {
    connect_share(world);
  }
  answer(world, &(struct cv_rank_frame){.hello = hello});
  say(world, world->crowd, &(struct cv_crowd_frame){.hello = hello});
  send_tokens(world);
}

static inline void stop(struct world *world) {
  cv_broker_free(world->core);
  stored_close(world->remote, world->store);
}

/* The store's error when an allocation fails; whatever happened to it, the next one on the same files goes on. */
static inline bool store_lives(struct world *world, enum cv_err err, const struct cv_why *why) {
  if (world->starve_store == NULL) {
    if (err != CV_OK) {
      fail_msg("%s", why->text);
    }
    return true;
  }
  world->feed();
  if (err != CV_OK) {
    /* OpenSSL does not tell that memory was missing; the server's client has words of its own. */
    bool clear = !STORED_IN_FILE        ? why->text[0] != '\0'
                 : err == CV_ERR_CRYPTO ? strstr(why->text, "cryptographic") != NULL
                                        : err == CV_ERR_NOMEM && strstr(why->text, "memory") != NULL;
    if (!clear || strchr(why->text, '\n') != NULL) {
      fail_msg("error %d: %s", err, why->text);
    }
    world->starve_store = NULL;
  }
  return err == CV_OK;
}

static inline void starve_store(const struct world *world) {
  if (world->starve_store != NULL) {
    world->starve_store();
  }
}

/* One master key. */
static inline struct cv_ring ring_of_test(void) {
  const struct cv_key master = {{42}};
  struct cv_ring ring = {.n = 0};
  assert_int_equal(cv_ring_add(&ring, &master, 0), CV_OK);
  return ring;
}

/* Makes database and core from what is stored. False if an allocation failed. */
static inline bool load(struct world *world) {
  struct cv_ring ring = ring_of_test();
  struct cv_why why = {.text = ""};
  stored_await();
  starve_store(world);
  enum cv_err opened = stored_open(&world->folder, &ring, &world->remote, &world->store, &why);
  cv_ring_fini(&ring);
  if (!store_lives(world, opened, &why)) {
    return false;
  }
  struct cv_broker_config config = {.name = "b",
                                    .limits = {.epsilon_micro = 1000000,
                                               .worker_epsilon_micro = world->worker_epsilon_micro,
                                               .release_tokens = 10,
                                               .arms = 10,
                                               .campaigns = 2,
                                               .submits = world->submits,
                                               .kept = world->kept,
                                               .retention_ms = world->retention_ms,
                                               .tokens = 1000000,
                                               .chunks = 100,
                                               .lease_ms = LEASE_MS,
                                               .queue = 100,
                                               .alone = !WORLD_TWO},
                                    .tagger = {.tag = tag, .data = world->mac},
                                    .digest = cv_sha256,
                                    .duo = fake_duo,
                                    .noise_seeded = true,
                                    .noise_seed = NOISE_SEED,
                                    .journal_bytes = world->journal_bytes};
  memcpy(config.database, cv_broker_store_id(world->store), sizeof(config.database));
  assert_int_equal(cv_broker_new(&config, &world->core), CV_OK);
  starve_store(world);
  if (!store_lives(world, cv_broker_store_load(world->store, world->core, world->now_ms, world->now_ms, &why), &why)) {
    stop(world);
    return false;
  }
  return true;
}

static inline void start(struct world *world) {
  if (!load(world)) {
    assert_true(load(world)); /* allocations succeed again */
  }
  connect_all(world);
}

/* `core` and `store` let allocations fail, `off` stops that; NULL: unchanged. */
static inline void world_make_starving(struct world *world, void (*core)(void), void (*store)(void),
                                       void (*off)(void)) {
  const struct cv_key key = {{7}};
  *world = (struct world){.next_worker = 1,
                          .now_ms = 1000,
                          .worker_epsilon_micro = WORLD_HIRES   ? 100000000
                                                  : WORLD_GRAPH ? 3000000
                                                                : 1000000,
                          .starve = core,
                          .starve_store = store,
                          .feed = off};
  folder_make(&world->folder);
  stored_make();
  assert_int_equal(cv_mac_new(&key, &world->mac), CV_OK);
  start(world);
}

static inline void world_make(struct world *world) {
  world_make_starving(world, NULL, NULL, NULL);
}

static inline void world_end(struct world *world) {
  stop(world);
  cv_mac_free(world->mac);
  cv_broker_batch_fini(&world->batch);
  fake_fini(&world->cobroker);
  folder_remove(&world->folder);
}

static inline void ask(struct world *world, const struct cv_order_frame *frame) {
  struct cv_why why;
  if (!world->died) {
    struct cv_order_frame greeting = *frame;
    greeting.hello = world->order->greeted ? (struct cv_hello){0} : hello;
    starve(world);
    (void)lives(world, cv_broker_on_order(world->core, world->order, &greeting, world->now_ms, world->now_ms, &why),
                &why);
  }
}

static inline void submit(struct world *world) {
  struct cv_order_frame frame = {.kind = CV_ORDER_SUBMIT};
  frame.as.submit = (struct cv_submit){.client_key = {1}, .spec = spec_of_test()};
  ask(world, &frame);
}

/* ---- the third-party's script: PLANS plans of TAU tokens of every arm, then a result ---- */

static inline void next_plan(struct world *world, uint64_t campaign) {
  struct cv_want want[ARMS];
  uint32_t wants = wants_of(world->thirdparty.plans + 1, want);
  struct cv_rank_plan plan = {.campaign = campaign,
                              .plan = {.number = world->thirdparty.plans + 1, .wants = wants, .want = want}};
  struct cv_standing standing[ARMS] = {{.arm = 0, .rank_class = 1}, {.arm = 1, .rank_class = 2}, {.arm = 2}};
  struct cv_rank_result result = {
      .campaign = campaign, .reason = CV_END_COMPLETE, .standings = ARMS, .standing = standing};
  if (world->thirdparty.plans < PLANS) {
    answer(world, &(struct cv_rank_frame){.plans = 1, .plan = &plan});
  } else {
    answer(world, &(struct cv_rank_frame){.results = 1, .result = &result});
  }
}

static inline void on_rank(struct world *world, const struct cv_rank_frame *frame) {
  struct thirdparty *party = &world->thirdparty;
  for (size_t i = 0; i < frame->opens; i++) {
    struct cv_rank_opened opened = {.position = {.campaign = frame->open[i].position.campaign,
                                                 .releases = party->releases,
                                                 .plans = party->plans,
                                                 .releases_hash = party->releases_hash,
                                                 .plans_hash = party->plans_hash},
                                    .seed = 5};
    answer(world, &(struct cv_rank_frame){.opened = 1, .answer = &opened});
    if (party->releases == releases_by(party->plans)) {
      next_plan(world, frame->open[i].position.campaign);
    }
  }
  for (size_t i = 0; i < frame->recorded; i++) {
    assert_int_equal(frame->record[i].plan.number, ++party->plans);
    assert_int_equal(cv_chain_plan(&party->plans_hash, &frame->record[i].plan, cv_sha256), CV_OK);
  }
  for (size_t i = 0; i < frame->accepted; i++) {
    if (frame->accept[i].number == party->plans + 1) {
      struct cv_want want[ARMS];
      uint32_t wants = wants_of(++party->plans, want);
      const struct cv_plan plan = {.number = party->plans, .wants = wants, .want = want};
      assert_int_equal(cv_chain_plan(&party->plans_hash, &plan, cv_sha256), CV_OK);
    }
  }
  for (size_t i = 0; i < frame->releases; i++) {
    const struct cv_release *release = &frame->release[i].release;
    assert_int_equal(release->number, party->releases + 1);
    party->release[++party->releases] = *release;
    cv_chain_release(&party->releases_hash, release, cv_sha256);
    if (party->releases == releases_by(party->plans)) {
      next_plan(world, frame->release[i].campaign);
    }
  }
  party->closed = party->closed || frame->closed > 0;
}

/* ---- the crowd's script ---- */

static inline void on_ack(struct world *world, const struct cv_crowd_ack *ack) {
  world->verdicts[ack->verdict]++;
  for (size_t i = 0; i < world->unacked_count; i++) {
    if (memcmp(world->unacked[i].ticket, ack->ticket, sizeof(ack->ticket)) == 0) {
      world->unacked[i] = world->unacked[--world->unacked_count];
      return;
    }
  }
}

/* Rounds follow the plans, each with TAU tokens of each arm in turn, over every restart. */
static inline void check_round(const struct cv_assign *assign) {
  if (WORLD_GRAPH) { /* plans differ */
    return;
  }
  uint64_t plan = assign->place / TAU, position = assign->place % TAU;
  uint64_t round = (plan * ARMS + assign->arm.one) * TAU + position;
  assert_int_equal(assign->round, round);
  /* Another arm was planned in the play before this arm's first, except in the first plan. */
  assert_int_equal(assign->switched, round < TAU ? 0 : position + 1);
}

/* Without pairs there is none. A place has the same one each time, and the one that its plan names. */
static inline void check_opponent(struct world *world, const struct cv_assign *assign) {
  if (!WORLD_PAIRS) {
    assert_int_equal(assign->opponent, 0);
    return;
  }
  struct cv_want want[ARMS];
  uint32_t arm = assign->arm.one, *known = &world->opponent[arm][assign->place];
  (void)wants_of(assign->place / TAU + 1, want);
  assert_int_equal(assign->arms, 1);
  assert_in_range(assign->opponent, 1, ARMS);
  assert_int_not_equal(assign->opponent, arm + 1);
  assert_true(want[arm].opponent == 0 || want[arm].opponent == assign->opponent);
  assert_true(*known == 0 || *known == assign->opponent);
  *known = assign->opponent;
}

/* Splits the token as a worker does, and hands the helper's seed to the co-broker unsealed. */
static inline void shard_token(struct world *world, const struct cv_assign *assign, struct token *token) {
  const struct cv_split_token bound = {.plan = assign->plan,
                                       .arm = assign->arm.one,
                                       .place = assign->place,
                                       .worker = assign->worker,
                                       .slot = assign->slot};
  token->values = 0;
  fake_shard(&world->cobroker, &world->terms, &bound, (uint64_t)token->value / cv_split_scale(CV_SPLIT_SCORE),
             &token->share, token->leader);
}

static inline void on_crowd(struct world *world, const struct cv_crowd_frame *frame) {
  for (size_t i = 0; i < frame->acks; i++) {
    on_ack(world, &frame->ack[i]);
  }
  if (frame->campaigns > 0) {
    world->terms = frame->campaign[0];
  }
  world->backoffs += frame->backoffs;
  for (size_t i = 0; i < frame->assigns; i++) {
    const struct cv_assign *assign = &frame->assign[i];
    struct token *token = &world->unacked[world->unacked_count++];
    check_round(assign);
    check_opponent(world, assign);
    memcpy(token->ticket, assign->ticket, sizeof(token->ticket));
    token->values = assign->arms;
    uint32_t played = assign->arms == 1 ? assign->arm.one : assign->arm.many[0];
    token->value = value_of(played, assign->place);
    for (uint32_t j = 1; j < assign->arms; j++) {
      token->more[j - 1] = value_shown(played, assign->place, assign->arm.many[j]);
    }
    if (WORLD_TWO) {
      shard_token(world, assign, token);
    }
  }
}

static inline void arrive(struct world *world, size_t n) {
  uint64_t worker[64];
  for (size_t i = 0; i < n; i++) {
    uint64_t next = world->next_worker++;
    worker[i] = WORLD_HIRES ? FIRST_HIRED + next % ARMS : next;
  }
  struct cv_arrive arrival = {.workers = n, .worker = worker, .credit = 64};
  say(world, world->crowd, &(struct cv_crowd_frame){.arrives = 1, .arrive = &arrival});
}

/* ---- turns ---- */

static inline void deliver(struct world *world) {
  struct cv_broker_out out;
  while (cv_broker_next_out(world->core, &out)) {
    if (out.schema == CV_SCHEMA_CROWD && out.conn == world->crowd) {
      on_crowd(world, out.frame.crowd);
    } else if (out.schema == CV_SCHEMA_RANK) {
      on_rank(world, out.frame.rank);
    } else if (out.schema == CV_SCHEMA_SHARE && out.conn == world->share) {
      struct cv_share_frame frame;
      if (fake_answer(&world->cobroker, out.frame.share, &frame)) {
        say_share(world, &frame);
      }
    }
  }
  send_tokens(world);
}

static inline bool restart(struct world *world) {
  world->died = false;
  stop(world);
  start(world);
  return true;
}

/* What the broker's shell does between two turns: it reads the campaign that a requester waits for. False: it has
 * died. */
static inline bool fetch_wanted(struct world *world) {
  uint32_t id;
  struct cv_why why = {.text = "out of memory"};
  if (!cv_broker_wanted(world->core, &id)) {
    return true;
  }
  starve_store(world);
  enum cv_err err = cv_broker_store_fetch(world->store, world->core, id, &why);
  if (err == CV_ERR_DAMAGED) {
    cv_broker_fetch_failed(world->core, id, why.text);
    err = CV_OK;
  }
  return store_lives(world, err, &why);
}

/* True if there was something to store. `lose`: the process dies before the commit. */
static inline bool turn(struct world *world, bool lose) {
  bool store = false;
  struct cv_why why = {.text = "out of memory"};
  if (world->died || !fetch_wanted(world)) {
    return restart(world);
  }
  starve(world);
  if (!lives(world, cv_broker_flush(world->core, world->now_ms, world->now_ms, &world->batch, &store), &why)) {
    return restart(world);
  }
  struct cv_broker_out early;
  assert_false(cv_broker_next_out(world->core, &early)); /* nothing leaves before it is stored */
  if (store && lose) {
    return restart(world);
  }
  if (store) {
    starve_store(world);
    if (!store_lives(world, cv_broker_store_commit(world->store, &world->batch, &why), &why)) {
      return restart(world);
    }
  }
  world->commits += store;
  if (store && world->on_commit != NULL) {
    world->on_commit(world);
  }
  cv_broker_stored(world->core);
  deliver(world);
  return store;
}

/* The noisy sums that these places and this noise must add up to. */
static inline void check_releases(const struct world *world) {
  const struct cv_mechanism_law law = mechanism_law("hybrid", 500000, 0);
  struct cv_mechanism *mechanism[ARMS];
  uint64_t place[ARMS] = {0}, tokens[ARMS] = {0}, plan = 0;
  struct cv_want want[ARMS];
  uint32_t wants = 0;
  for (uint32_t i = 0; i < ARMS; i++) {
    mechanism[i] = mechanism_new(&law);
  }
  for (uint64_t number = 1; number <= releases_by(PLANS); number++) {
    const struct cv_release *release = &world->thirdparty.release[number];
    for (uint32_t j = 0; release->plan != plan && j < wants; j++) {
      place[want[j].arm] += want[j].tokens;
    }
    plan = release->plan;
    wants = wants_of(plan, want);
    uint32_t arm = release->arm;
    int64_t item = 0;
    for (uint32_t j = 0; j < wants; j++) {
      bool shows = want[j].arm == arm || are_neighbours(want[j].arm, arm);
      for (uint32_t i = 0; shows && i < want[j].tokens; i++) {
        item += value_shown(want[j].arm, place[want[j].arm] + i, arm);
        tokens[arm]++;
      }
    }
    struct cv_rng_seeded seeded;
    cv_rng_seeded_init(&seeded, NOISE_SEED, CV_RNG_NOISE, arm, mechanism[arm]->releases + 1);
    cv_mechanism_draw(mechanism[arm], &seeded.rng);
    int64_t expected = cv_mechanism_release(mechanism[arm], item);
    expected += WORLD_TWO ? fake_noise(arm, mechanism[arm]->releases) : 0;
    assert_int_equal(release->noisy_sum, expected);
    struct cv_noise noise;
    cv_mechanism_noise(&law, mechanism[arm]->releases, &noise);
    assert_int_equal(release->noise.group[0].count, noise.group[0].count * (WORLD_TWO ? 2 : 1));
    assert_int_equal(release->tokens, tokens[arm]);
  }
  for (uint32_t i = 0; i < ARMS; i++) {
    cv_mechanism_free(mechanism[i]);
  }
}

/* What all workers together have been charged. */
static inline uint64_t charged(const struct world *world) {
  uint64_t sum = 0;
  for (const struct cv_chunk *chunk = world->core->accounts.cells.all; chunk != NULL; chunk = chunk->hh.next) {
    for (size_t i = 0; i < CV_CHUNK_CELLS; i++) {
      sum += chunk->as.cell[i];
    }
  }
  return sum;
}

/* ---- whole runs ---- */

/* Runs a campaign to its end. restart_every 0: never, n: after every n-th commit; lose_every likewise, before it. */
static inline void world_run(struct world *world, unsigned restart_every, unsigned lose_every) {
  unsigned stores = 0;
  for (int i = 0; i < 3000 && !world->thirdparty.closed; i++) {
    arrive(world, 3);
    world->now_ms += 10;
    cv_broker_tick(world->core, world->now_ms, world->now_ms);
    bool lose = lose_every > 0 && i > 2 && i % (int)lose_every == 0;
    if (turn(world, lose) && restart_every > 0 && ++stores % restart_every == 0) {
      stop(world);
      start(world);
    }
  }
  assert_true(world->thirdparty.closed);
  assert_int_equal(world->thirdparty.releases, releases_by(PLANS));
  check_releases(world);
  stop(world);
  start(world);
  assert_int_equal(charged(world), scores_shown() * 500000);
}

/* A campaign whose first plan is open, and the unanswered assignments of `n` workers that arrived. */
static inline void world_begin(struct world *world, size_t n) {
  submit(world);
  for (int i = 0; i < 10 && world->thirdparty.plans == 0; i++) {
    (void)turn(world, false);
  }
  arrive(world, n);
  bool store;
  struct cv_broker_out out;
  assert_int_equal(cv_broker_flush(world->core, world->now_ms, world->now_ms, &world->batch, &store), CV_OK);
  assert_false(store);
  cv_broker_stored(world->core);
  while (cv_broker_next_out(world->core, &out)) {
    if (out.schema == CV_SCHEMA_CROWD) {
      on_crowd(world, out.frame.crowd);
    }
  }
}

/* Sends this many values of the token. */
static inline enum cv_verdict world_verdict_of(struct world *world, const struct token *token, size_t values) {
  int64_t value[1 + ARMS + 1] = {token->value};
  memcpy(value + 1, token->more, sizeof(token->more));
  struct cv_token sent = {.values = values, .value = value};
  memcpy(sent.ticket, token->ticket, sizeof(sent.ticket));
  memset(world->verdicts, 0, sizeof(world->verdicts));
  say(world, world->crowd, &(struct cv_crowd_frame){.tokens = 1, .token = &sent});
  (void)turn(world, false);
  for (size_t i = 1; i < CV_COUNT(world->verdicts); i++) {
    if (world->verdicts[i] > 0) {
      return (enum cv_verdict)i;
    }
  }
  return CV_VERDICT_NONE;
}

/* A whole campaign, with a restart after every commit, every second and every third; on a server, where a restart is a
 * new session with its handshakes, after every second. */
static inline void world_restarts(void) {
  for (unsigned every = STORED_IN_FILE ? 1 : 2; every <= (STORED_IN_FILE ? 3 : 2); every++) {
    struct world world;
    world_make(&world);
    world.journal_bytes = every == 1 ? 0 : 2000; /* from the first restart on, chunks and a short journal */
    submit(&world);
    world_run(&world, every, 0);
    world_end(&world);
  }
}

/* The same with crashes before commits. */
static inline void world_crashes(void) {
  /* With two brokers a token needs two turns more until it counts. */
  unsigned first = WORLD_TWO ? 5 : 3;
  for (unsigned every = first; every <= first + (STORED_IN_FILE ? 4 : 1); every++) {
    struct world world;
    world_make(&world);
    world.journal_bytes = 3000;
    submit(&world);
    world_run(&world, every + 1, every);
    world_end(&world);
  }
}

#endif
