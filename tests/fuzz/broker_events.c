/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's core under a sequence of events that the input encodes: connections open and close, every message of the
 * four schemas in any order (built from a few bytes each, so that most are meaningful, or raw), time that jumps,
 * flushes with events in between, crashes before and after a commit, stored rows with a changed byte. After each flush
 * the core's state must be consistent, and its outputs must agree with earlier ones.
 *
 * First byte: the broker's settings. Then one byte for each event, listed below, followed by its arguments.
 */
#include "broker/mechanism/mechanism.h"
#include "broker/state.h"
#include "common/base/grid.h"
#include "tests/fuzz/broker_co.h"
#include "tests/fuzz/fuzz.h"

enum { EVENTS = 400 };

static const struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION, .program = "fuzz"};

static bool is_requester(const struct peer *peer) {
  return peer->who >= REQUESTER_FIRST && peer->who <= REQUESTER_LAST;
}

/* The peer that the input names; NULL if it is not connected or not of the requested kind. */
enum kind { CROWD, REQUESTER, RANK, SHARE, ANY };
static struct peer *pick(struct world *world, struct cv_reader *in, enum kind kind) {
  unsigned from = cv_read_u8(in);
  for (unsigned i = 0; i < PEERS; i++) {
    struct peer *peer = &world->peer[(from + i) % PEERS];
    enum kind is = peer->who == THIRDPARTY ? RANK
                   : peer->who == COBROKER ? SHARE
                   : is_requester(peer)    ? REQUESTER
                                           : CROWD;
    if (peer->conn != NULL && (kind == ANY || kind == is)) {
      return peer;
    }
  }
  return NULL;
}

static void note_wishes(struct peer *peer, const struct cv_arrive *arrive) {
  for (size_t i = 0; i < arrive->workers; i++) {
    uint32_t wish = arrive->wish == NULL ? CV_WISH_NONE : arrive->wish[i];
    if (arrive->worker[i] < WORKERS && (wish < 31 || wish == CV_WISH_NONE)) {
      peer->came_for[arrive->worker[i]] |= UINT32_C(1) << (wish < 31 ? wish : 31);
    }
  }
}

static void say_crowd(struct world *world, struct peer *peer, const struct cv_crowd_frame *frame) {
  struct cv_why why = {.text = ""};
  for (size_t i = 0; i < frame->arrives; i++) {
    note_wishes(peer, &frame->arrive[i]);
  }
  world_answered(world, peer, cv_broker_on_crowd(world->core, peer->conn, frame, world->now_ms, world->wall_ms, &why),
                 &why);
}

static void say_order(struct world *world, struct peer *peer, const struct cv_order_frame *frame) {
  struct cv_why why = {.text = ""};
  world_answered(world, peer, cv_broker_on_order(world->core, peer->conn, frame, world->now_ms, world->wall_ms, &why),
                 &why);
}

static void say_rank(struct world *world, struct peer *peer, const struct cv_rank_frame *frame) {
  struct cv_why why = {.text = ""};
  world_answered(world, peer, cv_broker_on_rank(world->core, peer->conn, frame, world->now_ms, &why), &why);
}

static void greet(struct world *world, struct peer *peer) {
  if (peer->who == THIRDPARTY) {
    say_rank(world, peer, &(struct cv_rank_frame){.hello = hello});
  } else if (is_requester(peer)) {
    say_order(world, peer, &(struct cv_order_frame){.hello = hello});
  } else {
    say_crowd(world, peer, &(struct cv_crowd_frame){.hello = hello});
  }
}

/* ---- connections ---- */

static void on_join(struct world *world, struct cv_reader *in) {
  uint8_t who = cv_read_u8(in);
  world_join(world, who % IDENTITIES);
  struct peer *peer = NULL;
  for (unsigned i = 0; i < PEERS; i++) {
    peer = world->peer[i].conn != NULL && world->peer[i].who == who % IDENTITIES ? &world->peer[i] : peer;
  }
  if (peer != NULL && (who & 0x80) == 0) {
    greet(world, peer);
  }
}

static void on_leave(struct world *world, struct cv_reader *in) {
  struct peer *peer = pick(world, in, ANY);
  if (peer != NULL) {
    world_leave(world, peer);
  }
}

/* ---- requesters ---- */

/* Any mechanism of the table, most often the default. */
static const char *mechanism_name(uint8_t which, bool exact) {
  size_t count = 0;
  while (cv_mechanism_at(count) != NULL) {
    count++;
  }
  return exact ? "none" : which == 0 ? "hybrid" : cv_mechanism_at(which % count)->traits->name;
}

static void on_submit(struct world *world, struct cv_reader *in) {
  struct peer *peer = pick(world, in, REQUESTER);
  uint8_t key = cv_read_u8(in), shape = cv_read_u8(in), tokens = cv_read_u8(in), times = cv_read_u8(in);
  struct cv_order_frame frame = {.kind = CV_ORDER_SUBMIT};
  frame.as.submit.client_key[0] = key % 4;
  struct cv_spec *spec = &frame.as.submit.spec;
  *spec = (struct cv_spec){.name = "fuzz \xc3\xa9",
                           .arms = 1 + (shape & 3U),
                           .policy = {.name = "ppar"},
                           .privatizer = {.name = "none"},
                           .epsilon_micro = 100000U * (1 + (shape >> 2 & 3U)),
                           .tokens_per_worker = 1 + (shape >> 4 & 1U),
                           .thirdparty_trusted = (shape & 0x20) != 0,
                           .tokens = 1 + 2U * tokens,
                           .deadline_ms = (times & 15) * 1000U,
                           .idle_ms = (times >> 4) * 1000U};
  (void)snprintf(spec->mechanism.name, sizeof(spec->mechanism.name), "%s",
                 mechanism_name(key >> 2, (shape & 0x60) == 0x60));
  if ((shape & 0x80) != 0) {
    CV_REQUIRE(cv_params_set_number(&spec->policy.params, "alpha", key) == CV_OK);
    spec->epsilon_micro *= key % 3;
  }
  uint32_t first = key % (spec->arms + 1);
  struct cv_gold_item gold[] = {
      {.item = first, .answer = key % 2 == 0 ? 0 : CV_GRID}, {.item = first + 1}, {.item = first + 2}};
  if ((times & 15) == 15) { /* with gold items, and workers who give many tokens */
    spec->tokens_per_worker = 3 + spec->arms;
    frame.as.submit.gold = (struct cv_gold){.items = 3,
                                            .item = gold,
                                            .tolerance = CV_GRID / 4,
                                            .error_micro = 100000,
                                            .level_micro = 50000,
                                            .share_micro = 500000,
                                            .epsilon_micro = 100000U * (key & 1U)};
  }
  if (peer != NULL) {
    say_order(world, peer, &frame);
  }
}

/* A campaign with two brokers. */
static void on_submit_two(struct world *world, struct cv_reader *in) {
  struct peer *peer = pick(world, in, REQUESTER);
  uint8_t key = cv_read_u8(in), shape = cv_read_u8(in), tokens = cv_read_u8(in);
  struct cv_order_frame frame = {.kind = CV_ORDER_SUBMIT};
  frame.as.submit.client_key[0] = key % 4;
  frame.as.submit.spec = (struct cv_spec){.name = "two",
                                          .arms = 1 + (shape & 3U),
                                          .policy = {.name = "ppar"},
                                          .privatizer = {.name = "none"},
                                          .epsilon_micro = 100000U * (1 + (shape >> 2 & 3U)),
                                          .tokens_per_worker = 1 + (shape >> 4 & 3U),
                                          .tokens = 1 + 2U * tokens,
                                          .deadline_ms = (shape >> 6) * 5000U,
                                          .brokers = 2,
                                          .score_bits = CV_SPLIT_SCORE};
  (void)snprintf(frame.as.submit.spec.mechanism.name, CV_PARAM_TEXT, "%s", mechanism_name(key >> 4, false));
  if (peer != NULL) {
    say_order(world, peer, &frame);
  }
}

static void on_request(struct world *world, struct cv_reader *in) {
  static const enum cv_order_kind kinds[] = {CV_ORDER_WATCH,  CV_ORDER_EXPORT,   CV_ORDER_STATUS, CV_ORDER_CANCEL,
                                             CV_ORDER_LEDGER, CV_ORDER_ACCEPTED, CV_ORDER_NONE,   CV_ORDER_PURGE};
  struct peer *peer = pick(world, in, REQUESTER);
  uint8_t what = cv_read_u8(in);
  struct cv_order_frame frame = {.kind = kinds[what % CV_COUNT(kinds)]};
  if (frame.kind == CV_ORDER_LEDGER) {
    frame.as.ledger = (struct cv_statement_request){.campaign = 0};
  }
  if (frame.kind == CV_ORDER_WATCH) {
    frame.as.watch.campaign = what / CV_COUNT(kinds) % (CAMPAIGNS + 1);
    frame.as.watch.describe = frame.as.watch.standings = (what & 0x80) != 0;
  } else {
    frame.as.campaign = what / CV_COUNT(kinds) % (CAMPAIGNS + 1);
  }
  if (peer != NULL) {
    say_order(world, peer, &frame);
  }
}

/* ---- workers ---- */

/* `wishes`: one more byte for each worker, its wish: any arm, an existing one, or one far out of range. */
static void let_arrive(struct world *world, struct cv_reader *in, bool wishes) {
  struct peer *peer = pick(world, in, CROWD);
  uint8_t first = cv_read_u8(in), n = cv_read_u8(in);
  uint64_t worker[32];
  uint32_t wish[32];
  struct cv_arrive arrive = {.workers = n % 32, .worker = worker, .credit = n >> 5};
  if (peer == NULL) {
    return;
  }
  uint64_t low = world_identity[peer->who].first, range = world_identity[peer->who].last - low + 1;
  for (size_t i = 0; i < arrive.workers; i++) {
    worker[i] = (first & 0x80) != 0 ? first + i : low + (first + i) % range;
    uint8_t byte = wishes ? cv_read_u8(in) : 0;
    wish[i] = byte >= 0xf0 ? CV_WISH_NONE - (byte & 15U) : byte % 6;
  }
  arrive.wish = wishes ? wish : NULL;
  arrive.credit = arrive.credit == 7 ? UINT32_MAX : arrive.credit * 8;
  say_crowd(world, peer, &(struct cv_crowd_frame){.arrives = 1, .arrive = &arrive});
}

static void on_arrive(struct world *world, struct cv_reader *in) {
  let_arrive(world, in, false);
}

static struct peer *holder_of(struct world *world, uint64_t worker) {
  for (struct peer *peer = world->peer; peer < world->peer + PEERS; peer++) {
    if (peer->conn != NULL && cv_identity_vouches_for(&world_identity[peer->who], worker)) {
      return peer;
    }
  }
  return NULL;
}

/* In two shares, made once for each assignment. */
static void send_shares(struct world *world, struct peer *peer, struct assigned *assigned, uint8_t how) {
  const struct heard *heard = world_heard(world, assigned->campaign);
  const struct cv_split_token at = {.plan = assigned->plan,
                                    .arm = assigned->arm,
                                    .place = assigned->place,
                                    .worker = assigned->worker,
                                    .slot = assigned->slot};
  int64_t value = world_value(assigned->campaign, assigned->arm, assigned->place);
  if (!assigned->is_split || (how & 7) == 4) { /* 4: another answer to the same ticket */
    assigned->is_split = co_split(world, &heard->terms, &at, value, assigned->leader, &assigned->share);
  }
  if (!assigned->is_split) {
    return;
  }
  uint8_t leader[CV_SPLIT_LEADER_MOST];
  struct cv_token_share share = assigned->share;
  memcpy(leader, assigned->leader, sizeof(leader));
  share.leader = leader;
  struct cv_token token = {.share = &share};
  memcpy(token.ticket, assigned->ticket, sizeof(token.ticket));
  leader[how >> 3 & 7] ^= (how & 7) == 5;
  share.sealed[how >> 3 & 7] ^= (how & 7) == 6;
  token.ticket[how % CV_TICKET_BYTES] ^= (how & 7) == 7 ? how : 0;
  share.leader_bytes -= (how & 0x47) == 0x45;
  say_crowd(world, peer, &(struct cv_crowd_frame){.tokens = 1, .token = &token});
}

static void send_token(struct world *world, struct peer *peer, struct assigned *assigned, uint8_t how) {
  const struct heard *heard = world_heard(world, assigned->campaign);
  if (heard != NULL && heard->terms.split.score_bits != 0 && (how & 0x78) != 0x78) {
    send_shares(world, peer, assigned, how);
    return;
  }
  int64_t value[2] = {world_value(assigned->campaign, assigned->arm, assigned->place), 0};
  struct cv_token token = {.values = 1, .value = value};
  memcpy(token.ticket, assigned->ticket, sizeof(token.ticket));
  if ((how & 7) == 5) {
    value[0] = (how & 8) != 0 ? -1 : INT64_MAX;
  } else if ((how & 7) == 6) {
    token.values = 2;
  } else if ((how & 7) == 7) {
    token.ticket[how % CV_TICKET_BYTES] ^= how;
  }
  say_crowd(world, peer, &(struct cv_crowd_frame){.tokens = 1, .token = &token});
}

static void on_token(struct world *world, struct cv_reader *in) {
  uint8_t which = cv_read_u8(in), how = cv_read_u8(in);
  size_t known = world->assignments < ASSIGNED ? world->assignments : ASSIGNED;
  if (known == 0) {
    return;
  }
  struct assigned *assigned = &world->assigned[which % known];
  struct peer *peer = (how & 0x80) != 0 ? pick(world, in, CROWD) : holder_of(world, assigned->worker);
  if (peer != NULL) {
    send_token(world, peer, assigned, how);
  }
}

/* Answers all open assignments, from the newest back. */
static void on_tokens(struct world *world, struct cv_reader *in) {
  size_t n = cv_read_u8(in);
  for (size_t i = 0; i < n && i < world->assignments && i < ASSIGNED; i++) {
    struct assigned *assigned = &world->assigned[(world->assignments - 1 - i) % ASSIGNED];
    struct peer *peer = holder_of(world, assigned->worker);
    if (peer != NULL) {
      send_token(world, peer, assigned, 0);
    }
  }
}

/* Declines a campaign; or one assignment: its own, another peer's or one that was never made. */
static void on_decline(struct world *world, struct cv_reader *in) {
  struct peer *peer = pick(world, in, CROWD);
  struct cv_decline decline = {.campaign = cv_read_u8(in), .why = "too little privacy"};
  size_t known = world->assignments < ASSIGNED ? world->assignments : ASSIGNED;
  if (decline.campaign >= 0xc0) {
    decline.has_ticket = true;
    if (known > 0) {
      memcpy(decline.ticket, world->assigned[decline.campaign % known].ticket, sizeof(decline.ticket));
    }
    decline.campaign = 0;
  }
  if (peer != NULL) {
    say_crowd(world, peer, &(struct cv_crowd_frame){.declines = 1, .decline = &decline});
  }
}

/* ---- the third-party ---- */

static struct heard *heard_by(struct world *world, struct cv_reader *in) {
  return &world->heard[cv_read_u8(in) % CAMPAIGNS];
}

static uint64_t id_of(const struct world *world, const struct heard *heard) {
  return (uint64_t)(heard - world->heard);
}

static void on_opened(struct world *world, struct cv_reader *in) {
  struct peer *peer = pick(world, in, RANK);
  const struct heard *heard = heard_by(world, in);
  uint8_t how = cv_read_u8(in);
  struct cv_rank_opened opened = {.position = heard->position, .seed = 7};
  opened.position.campaign = id_of(world, heard);
  opened.refused = how == 0xff ? "no such policy" : NULL;
  opened.seed += (how & 0xf0) == 0xe0;
  opened.position.releases += (how & 0xf0) == 0xd0;
  opened.position.plans += (how & 0xf0) == 0xc0;
  opened.position.plans_hash.bytes[how & 15] ^= (how & 0xf0) == 0xb0;
  if ((how & 0xf0) == 0xa0) { /* the third-party has lost everything */
    opened.position = (struct cv_position){.campaign = id_of(world, heard)};
    world->heard[id_of(world, heard)].position = opened.position;
  }
  if (peer != NULL) {
    say_rank(world, peer, &(struct cv_rank_frame){.opened = 1, .answer = &opened});
  }
}

static void on_plan(struct world *world, struct cv_reader *in) {
  struct peer *peer = pick(world, in, RANK);
  struct heard *heard = heard_by(world, in);
  uint8_t how = cv_read_u8(in);
  struct cv_want want[8];
  struct cv_standing standing[4] = {{.arm = 0, .rank_class = 1, .tokens = 5, .mean = 0.5, .radius = 0.1}};
  struct cv_rank_plan plan = {.campaign = id_of(world, heard), .standings = how >> 6, .standing = standing};
  plan.plan = (struct cv_plan){.number = heard->position.plans + 1, .wants = how & 7, .want = want};
  plan.plan.number += (how & 0x38) == 0x38 ? 1 : 0;
  plan.plan.number -= (how & 0x38) == 0x30 ? 1 : 0;
  for (uint32_t i = 0; i < plan.plan.wants; i++) {
    uint8_t byte = cv_read_u8(in);
    want[i] = (struct cv_want){.arm = (how & 8) != 0 ? byte >> 5 : i, .tokens = byte & 31};
  }
  for (uint32_t i = 1; i < plan.standings; i++) {
    standing[i] = (struct cv_standing){.arm = i, .rank_class = i == 3 ? cv_read_u8(in) : 0};
  }
  if (peer != NULL) {
    say_rank(world, peer, &(struct cv_rank_frame){.plans = 1, .plan = &plan});
  }
}

static void on_verdict(struct world *world, struct cv_reader *in) {
  struct peer *peer = pick(world, in, RANK);
  const struct heard *heard = heard_by(world, in);
  uint8_t how = cv_read_u8(in);
  struct cv_rank_number ack = {.campaign = id_of(world, heard), .number = heard->position.releases + (how == 0xff)};
  struct cv_standing standing = {.arm = how & 7, .rank_class = 1};
  struct cv_rank_result result = {.campaign = id_of(world, heard),
                                  .reason = (enum cv_end)((how >> 3) % CV_END_COUNT),
                                  .standings = how >> 7,
                                  .standing = &standing};
  struct cv_rank_frame frame = {.acks = 1, .ack = &ack, .results = how & 1, .result = &result};
  if (peer != NULL) {
    say_rank(world, peer, &frame);
  }
}

/* ---- the co-broker ---- */

static void on_link(struct world *world, struct cv_reader *in) {
  uint8_t how = cv_read_u8(in);
  world_join(world, how >= 0xf0 ? PUPPET : COBROKER);
  for (struct peer *peer = world->peer; peer < world->peer + PEERS; peer++) {
    if (peer->conn != NULL && peer->conn == world->core->cobroker && peer != world->co.peer) {
      co_join(world, peer);
      return;
    }
  }
}

/* The link, or the co-broker's state, is lost. */
static void on_unlink(struct world *world, struct cv_reader *in) {
  struct peer *peer = pick(world, in, SHARE);
  uint8_t how = cv_read_u8(in);
  if (peer != NULL) {
    world_leave(world, peer);
  }
  if (how >= 0xf0) {
    co_lose(world);
  }
}

/* The broker has one of several own keys from now on; the co-broker, which knew the one before, starts anew. */
static void on_renew(struct world *world, struct cv_reader *in) {
  const struct cv_digest key = {{0xb, cv_read_u8(in) & 3}};
  if (cv_broker_renew(world->core, &key)) {
    world->config.duo.broker = key;
    co_lose(world);
  }
}

static void on_co(struct world *world, struct cv_reader *in) {
  co_turn(world, cv_read_u8(in));
}

/* ---- everything else ---- */

/* The next bytes, as if from the network. */
static void on_raw(struct world *world, struct cv_reader *in) {
  static struct cv_arena arena;
  struct peer *peer = pick(world, in, ANY);
  size_t n = cv_read_u8(in), left = (size_t)(in->end - in->at);
  const uint8_t *bytes = cv_read(in, n < left ? n : left);
  n = n < left ? n : left;
  union {
    struct cv_crowd_frame crowd;
    struct cv_rank_frame rank;
    struct cv_order_frame order;
    struct cv_share_frame share;
  } frame;
  if (arena.base == NULL) {
    CV_REQUIRE(cv_arena_init(&arena, CV_ARENA_BYTES) == CV_OK);
  }
  if (peer == NULL || bytes == NULL) {
    return;
  }
  if (peer->who == THIRDPARTY && cv_rank_decode(bytes, n, &arena, &frame.rank) == CV_OK) {
    say_rank(world, peer, &frame.rank);
  } else if (is_requester(peer) && cv_order_decode(bytes, n, &arena, &frame.order) == CV_OK) {
    say_order(world, peer, &frame.order);
  } else if (peer->who == COBROKER && cv_share_decode(bytes, n, &arena, &frame.share) == CV_OK) {
    struct cv_why why = {.text = ""};
    world->co.lied = true;
    world_answered(world, peer,
                   cv_broker_on_share(world->core, peer->conn, &frame.share, world->now_ms, world->wall_ms, &why),
                   &why);
  } else if (peer->who < REQUESTER_FIRST && cv_crowd_decode(bytes, n, &arena, &frame.crowd) == CV_OK) {
    say_crowd(world, peer, &frame.crowd);
  }
}

static void on_time(struct world *world, struct cv_reader *in) {
  uint8_t by = cv_read_u8(in);
  world->now_ms += (by & 0x7fU) * 50U;
  world->wall_ms += (by & 0x80) != 0 ? 3000 : (by & 0x7fU) * 50U;
  cv_broker_tick(world->core, world->now_ms, world->wall_ms);
  cv_cobroker_tick(world->co.core, world->now_ms, world->wall_ms);
}

static void turn(struct world *world) {
  world_flush(world);
  world_store(world);
  co_turn(world, 0);
}

/* The process ends; the batch in flight may have been stored. */
static bool crash(struct world *world, bool stored) {
  if (world->in_flight && world->stores && stored) {
    disk_commit(&world->disk, &world->batch);
  }
  return world_restart(world);
}

static bool damage(struct world *world, struct cv_reader *in) {
  uint8_t which = cv_read_u8(in), at = cv_read_u8(in), with = cv_read_u8(in);
  if (world->disk.rows == 0) {
    return true;
  }
  struct disk_row *row = &world->disk.row[which % world->disk.rows];
  world->damaged = true;
  if (with == 0) {
    row->bytes.len = row->bytes.len * at / 256;
  } else if (row->bytes.len > 0) {
    row->bytes.data[(at < 128 ? at : row->bytes.len - 1 - (at - 128U)) % row->bytes.len] ^= with;
  }
  return world_restart(world);
}

typedef void event_fn(struct world *world, struct cv_reader *in);
static event_fn *const events[] = {on_join,    on_leave,  on_submit, on_request, on_arrive, on_token, on_tokens,
                                   on_decline, on_opened, on_plan,   on_verdict, on_raw,    on_time};

/* False when the input has ended the world. */
static bool event(struct world *world, struct cv_reader *in) {
  uint8_t what = cv_read_u8(in) % 32;
  if (what < CV_COUNT(events)) {
    events[what](world, in);
    return true;
  }
  switch (what) {
    case 13:
      world_flush(world);
      return true;
    case 14:
      world_store(world);
      return true;
    case 15:
      return crash(world, true);
    case 16:
      return crash(world, false);
    case 17:
      return damage(world, in);
    case 18:
      cv_broker_drain(world->core);
      return true;
    case 19:
      on_link(world, in);
      return true;
    case 20:
      on_unlink(world, in);
      return true;
    case 21:
      on_submit_two(world, in);
      return true;
    case 22:
      on_co(world, in);
      return true;
    case 23:
      on_renew(world, in);
      return true;
    case 31:
      let_arrive(world, in, true);
      return true;
    default:
      turn(world);
      return true;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  static struct world world; /* large */
  struct cv_reader in = cv_reader_over(bytes, n);
  world_begin(&world, cv_read_u8(&in));
  bool goes_on = true;
  for (int i = 0; i < EVENTS && goes_on && !in.failed && in.at < in.end; i++) {
    goes_on = event(&world, &in);
  }
  for (int i = 0; goes_on && i < 3; i++) {
    turn(&world);
  }
  if (goes_on && crash(&world, true)) {
    turn(&world);
  }
  world_end(&world);
  return 0;
}
