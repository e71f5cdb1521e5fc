/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third-party's core under a sequence of events that the input encodes: two brokers connect and disconnect, send
 * every message of rank.proto in any order, correct or with a small change, or raw bytes; flushes, commits and crashes
 * come in between. What is stored follows from what was stored before, loads again after a crash, and, as long as the
 * broker recorded no plan of its own, replays to the same decisions. Every output is valid.
 */
#include "common/crypto/crypto.h"
#include "proto/codec/chain.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/thirdparty_disk.h"

enum { BROKERS = 2, CAMPAIGNS = 3, PLANS = 24, RELEASES = 64, ARMS = 4, EVENTS = 400 };

/* A campaign as a broker has it. */
struct order {
  struct cv_spec spec;
  uint64_t id;
  bool has_seed, foreign; /* foreign: a plan was recorded that the policy did not make */
  uint64_t seed;
  struct cv_plan plan[PLANS], asked; /* accepted; the latest one received */
  struct cv_want want[PLANS + 1][ARMS];
  uint64_t plans;
  struct cv_release release[RELEASES];
  uint64_t releases;
  uint32_t released; /* wants of the last plan */
  uint64_t tokens[ARMS];
  struct cv_position theirs;
};

struct broker {
  struct cv_thirdparty_conn *conn; /* NULL: not connected */
  struct order order[CAMPAIGNS];
};

struct world {
  struct cv_thirdparty *thirdparty;
  struct cv_rng_seeded rng;
  struct disk disk;
  struct cv_thirdparty_batch batch;
  bool in_flight;
  struct broker broker[BROKERS];
};

static const struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION, .program = "fuzz"};
static const char *const names[BROKERS] = {"alice", "bob"};

static void note(void *data, const struct cv_note *note) {
  (void)data;
  fuzz_line(note->text);
}

static void start(struct world *world) {
  const struct cv_thirdparty_config setup = {.digest = cv_sha256,
                                             .rng = &world->rng.rng,
                                             .program = "fuzz",
                                             .note = note,
                                             .limits = {.campaigns = 2, .arms = ARMS, .queued_wants = 16}};
  cv_thirdparty_free(world->thirdparty);
  CV_REQUIRE(cv_thirdparty_new(&setup, &world->thirdparty) == CV_OK);
  disk_load(&world->disk, world->thirdparty);
  for (size_t i = 0; i < BROKERS; i++) {
    world->broker[i].conn = NULL;
  }
}

static void say(struct world *world, struct broker *broker, const struct cv_rank_frame *frame) {
  if (broker->conn != NULL) {
    CV_REQUIRE(cv_thirdparty_on_rank(world->thirdparty, broker->conn, frame) == CV_OK);
  }
}

/* ---- what the third-party says ---- */

static struct order *order_of(struct broker *broker, uint64_t id) {
  return id >= 1 && id <= CAMPAIGNS ? &broker->order[id - 1] : NULL;
}

static void copy_plan(struct cv_plan *to, struct cv_want *room, const struct cv_plan *from) {
  CV_REQUIRE(from->wants <= ARMS);
  memcpy(room, from->want, from->wants * sizeof(*room));
  *to = (struct cv_plan){.number = from->number, .wants = from->wants, .want = room};
}

static void check_standings(const struct order *order, const struct cv_standing *standing, uint32_t n) {
  CV_REQUIRE(n == order->spec.arms);
  for (uint32_t i = 0; i < n; i++) {
    CV_REQUIRE(standing[i].arm == i && standing[i].rank_class <= n);
    CV_REQUIRE(standing[i].mean == standing[i].mean && standing[i].radius >= 0);
  }
}

static void hear_plan(struct broker *broker, const struct cv_rank_plan *message) {
  struct order *order = order_of(broker, message->campaign);
  const struct cv_plan *plan = &message->plan;
  unsigned seen = 0;
  CV_REQUIRE(order != NULL && plan->wants >= 1 && plan->wants <= order->spec.arms && plan->number >= 1);
  for (uint32_t i = 0; i < plan->wants; i++) {
    CV_REQUIRE(plan->want[i].arm < order->spec.arms && plan->want[i].tokens >= 1);
    CV_REQUIRE((seen >> plan->want[i].arm & 1) == 0);
    seen |= 1U << plan->want[i].arm;
  }
  check_standings(order, message->standing, message->standings);
  /* the same when requested again */
  if (order->asked.number == plan->number && !order->foreign) {
    CV_REQUIRE(order->asked.wants == plan->wants);
    CV_REQUIRE(memcmp(order->asked.want, plan->want, plan->wants * sizeof(*plan->want)) == 0);
  }
  copy_plan(&order->asked, order->want[PLANS], plan);
}

static void hear_opened(struct broker *broker, const struct cv_rank_opened *opened) {
  struct order *order = order_of(broker, opened->position.campaign);
  if (opened->refused != NULL) {
    fuzz_line(opened->refused);
    return;
  }
  CV_REQUIRE(order != NULL && (!order->has_seed || order->seed == opened->seed));
  order->has_seed = true;
  order->seed = opened->seed;
  order->theirs = opened->position;
}

static void hear(struct broker *broker, const struct cv_rank_frame *frame) {
  CV_REQUIRE(frame->opens + frame->recorded + frame->releases + frame->accepted + frame->refused + frame->stops +
                 frame->closed ==
             0);
  for (size_t i = 0; i < frame->opened; i++) {
    hear_opened(broker, &frame->answer[i]);
  }
  for (size_t i = 0; i < frame->acks; i++) {
    CV_REQUIRE(order_of(broker, frame->ack[i].campaign) != NULL);
  }
  for (size_t i = 0; i < frame->plans; i++) {
    hear_plan(broker, &frame->plan[i]);
  }
  for (size_t i = 0; i < frame->results; i++) {
    const struct order *order = order_of(broker, frame->result[i].campaign);
    CV_REQUIRE(order != NULL && frame->result[i].reason != CV_END_NONE);
    check_standings(order, frame->result[i].standing, frame->result[i].standings);
  }
}

static void check_wire(const struct cv_rank_frame *frame) {
  static struct cv_arena scratch, arena;
  static struct cv_buf bytes;
  struct cv_rank_frame back;
  if (scratch.base == NULL) {
    CV_REQUIRE(cv_arena_init(&scratch, CV_ARENA_BYTES) == CV_OK && cv_arena_init(&arena, CV_ARENA_BYTES) == CV_OK);
  }
  cv_buf_clear(&bytes);
  CV_REQUIRE(cv_rank_encode(frame, &scratch, &bytes) == CV_OK);
  CV_REQUIRE(cv_rank_decode(bytes.data, bytes.len, &arena, &back) == CV_OK);
}

static void flush(struct world *world) {
  if (!world->in_flight) {
    CV_REQUIRE(cv_thirdparty_flush(world->thirdparty, &world->batch) == CV_OK);
    world->in_flight = true;
  }
}

static void commit(struct world *world) {
  struct cv_thirdparty_out out;
  if (!world->in_flight) {
    return;
  }
  world->in_flight = false;
  disk_apply(&world->disk, &world->batch);
  cv_thirdparty_batch_fini(&world->batch);
  cv_thirdparty_stored(world->thirdparty);
  while (cv_thirdparty_next_out(world->thirdparty, &out)) {
    struct broker *broker = out.data;
    check_wire(out.frame);
    hear(broker, out.frame);
    if (out.close != NULL) {
      fuzz_line(out.close);
      cv_thirdparty_leave(world->thirdparty, out.conn);
      broker->conn = broker->conn == out.conn ? NULL : broker->conn;
    }
  }
}

static void crash(struct world *world, bool stored) {
  if (world->in_flight) {
    if (stored) {
      disk_apply(&world->disk, &world->batch);
    }
    cv_thirdparty_batch_fini(&world->batch);
  }
  world->in_flight = false;
  start(world);
}

/* ---- what a broker says ---- */

static void on_connect(struct world *world, struct broker *broker, struct order *order, uint8_t how) {
  struct cv_thirdparty_conn *older = broker->conn;
  (void)order;
  CV_REQUIRE(cv_thirdparty_join(world->thirdparty, names[broker - world->broker], broker, &broker->conn) == CV_OK);
  if (older != NULL && (how & 1) != 0) { /* the older connection closes by itself */
    cv_thirdparty_leave(world->thirdparty, older);
  }
  if (how != 0xff) {
    say(world, broker, &(struct cv_rank_frame){.hello = hello});
  }
}

static void on_vanish(struct world *world, struct broker *broker, struct order *order, uint8_t how) {
  (void)order;
  (void)how;
  if (broker->conn != NULL) {
    cv_thirdparty_leave(world->thirdparty, broker->conn);
    broker->conn = NULL;
  }
}

static struct cv_position position_of(const struct order *order) {
  struct cv_position position = {.campaign = order->id, .releases = order->releases, .plans = order->plans};
  for (uint64_t i = 0; i < order->releases; i++) {
    cv_chain_release(&position.releases_hash, &order->release[i], cv_sha256);
  }
  for (uint64_t i = 0; i < order->plans; i++) {
    CV_REQUIRE(cv_chain_plan(&position.plans_hash, &order->plan[i], cv_sha256) == CV_OK);
  }
  return position;
}

static void describe(struct order *order, uint8_t how) {
  static const char *const radius[] = {"sound", "printed"}, *const settled[] = {"hold", "release"};
  static const double alpha[] = {0, 0.05, 0.3, 1e300};
  struct cv_params *params = &order->spec.policy.params;
  order->spec = (struct cv_spec){.name = "fuzz",
                                 .arms = 1 + (how & 3U),
                                 .epsilon_micro = (how & 4) != 0 ? 250000 : 1,
                                 .tokens_per_worker = 1,
                                 .tokens = 1 << 30,
                                 .policy = {.name = "ppar"},
                                 .mechanism = {.name = "hybrid"},
                                 .privatizer = {.name = "none"}};
  if ((how & 8) != 0) {
    (void)snprintf(order->spec.mechanism.name, CV_PARAM_TEXT, "none");
  }
  CV_REQUIRE(cv_params_set_number(params, "alpha", alpha[how >> 4 & 3]) == CV_OK);
  CV_REQUIRE(cv_params_set_number(params, "tokens_per_round", (how & 0x40) != 0 ? 4000000 : 100) == CV_OK);
  CV_REQUIRE(cv_params_set_text(params, "radius", radius[how >> 7]) == CV_OK);
  CV_REQUIRE(cv_params_set_number(params, "lies", (how & 0xa0) == 0x20 ? 1000 : 0) == CV_OK);
  CV_REQUIRE(cv_params_set_text(params, "settled", settled[how >> 6 & 1]) == CV_OK);
}

static void on_open(struct world *world, struct broker *broker, struct order *order, uint8_t how) {
  if (order->spec.arms == 0) {
    describe(order, how);
    how = 0;
  }
  struct cv_rank_open open = {
      .spec = order->spec, .position = position_of(order), .has_seed = order->has_seed, .seed = order->seed};
  open.stop = (how & 0xf0) == 0xf0 ? (enum cv_end)((how & 15) % CV_END_COUNT) : CV_END_NONE;
  open.position.releases += (how & 0xf0) == 0xe0;
  open.position.plans += (how & 0xf0) == 0xd0;
  open.seed ^= (how & 0xf0) == 0xc0;
  open.spec.tokens += (how & 0xf0) == 0xb0;
  say(world, broker, &(struct cv_rank_frame){.opens = 1, .open = &open});
}

static void take(struct order *order, const struct cv_plan *plan) {
  if (order->plans < PLANS && plan->number == order->plans + 1) {
    copy_plan(&order->plan[order->plans], order->want[order->plans], plan);
    order->plans++;
    order->released = 0;
  }
}

static void on_accept(struct world *world, struct broker *broker, struct order *order, uint8_t how) {
  struct cv_rank_number accept = {.campaign = order->id, .number = order->asked.number + (how == 0xff)};
  if (how < 0x80) {
    take(order, &order->asked);
  }
  say(world, broker, &(struct cv_rank_frame){.accepted = 1, .accept = &accept});
}

/* The next release of the plan, as an honest broker would send it. False if there is none. */
static bool make_release(struct order *order, uint8_t how) {
  const struct cv_plan *plan = order->plans == 0 ? NULL : &order->plan[order->plans - 1];
  if (plan == NULL || order->released >= plan->wants || order->releases == RELEASES) {
    return false;
  }
  const struct cv_want *want = &plan->want[order->released++];
  struct cv_release *release = &order->release[order->releases];
  order->tokens[want->arm] += want->tokens;
  *release = (struct cv_release){
      .number = ++order->releases, .plan = plan->number, .arm = want->arm, .tokens = order->tokens[want->arm]};
  double mean = (double)(want->arm + 1) * (how & 31) / 64;
  release->noisy_sum = (int64_t)(mean * (double)release->tokens * 1048576);
  if (strcmp(order->spec.mechanism.name, "none") != 0) {
    release->noise = (struct cv_noise){1 + (how >> 6 & 1U), {{2, 1 + (how >> 5 & 1U)}, {4, 1}}};
  }
  return true;
}

static void on_release(struct world *world, struct broker *broker, struct order *order, uint8_t how) {
  struct cv_rank_release message[ARMS];
  size_t n = 0;
  while (n < ((how & 0x80) != 0 ? ARMS : 1) && make_release(order, how)) {
    message[n++] = (struct cv_rank_release){.campaign = order->id, .release = order->release[order->releases - 1]};
  }
  if (n > 0) {
    say(world, broker, &(struct cv_rank_frame){.releases = n, .release = message});
  }
}

/* A release that was sent before, with something changed. */
static void on_bent_release(struct world *world, struct broker *broker, struct order *order, uint8_t how) {
  struct cv_rank_release message = {.campaign = order->id};
  if (order->releases == 0) {
    return;
  }
  struct cv_release *release = &message.release;
  *release = order->release[(how >> 4) % order->releases];
  switch (how & 15) {
    case 0:
      release->noisy_sum = INT64_MIN;
      break;
    case 1:
      release->tokens = UINT64_MAX;
      break;
    case 2:
      release->noise.group[0].scale = 1e308;
      break;
    case 3:
      release->noise.groups = CV_NOISE_GROUPS_MAX;
      break;
    case 4:
      release->arm = CV_ARMS_MAX;
      break;
    case 5:
      release->plan++;
      break;
    default:
      break;
  }
  release->number += how >> 7;
  say(world, broker, &(struct cv_rank_frame){.releases = 1, .release = &message});
}

/* Answers the records that the third-party reports as missing. */
static void on_resend(struct world *world, struct broker *broker, struct order *order, uint8_t how) {
  struct cv_rank_plan record[PLANS];
  struct cv_rank_release release[RELEASES];
  struct cv_rank_frame frame = {.record = record, .release = release};
  uint64_t plans = (how & 1) != 0 ? 0 : order->theirs.plans, releases = (how & 2) != 0 ? 0 : order->theirs.releases;
  for (uint64_t i = plans; i < order->plans && (how & 4) == 0; i++) {
    record[frame.recorded++] = (struct cv_rank_plan){.campaign = order->id, .plan = order->plan[i]};
  }
  for (uint64_t i = releases; i < order->releases && (how & 8) == 0; i++) {
    release[frame.releases++] = (struct cv_rank_release){.campaign = order->id, .release = order->release[i]};
  }
  say(world, broker, &frame);
}

/* A recorded plan that the policy did not ask for. */
static void on_foreign_plan(struct world *world, struct broker *broker, struct order *order, uint8_t how) {
  struct cv_want want[2] = {{.arm = how & 3, .tokens = 1 + (how >> 2 & 3U)}, {.arm = how >> 4 & 3, .tokens = how >> 6}};
  struct cv_rank_plan record = {.campaign = order->id,
                                .plan = {.number = order->plans + 1, .wants = 1 + (how >> 7), .want = want}};
  order->foreign = true;
  take(order, &record.plan);
  say(world, broker, &(struct cv_rank_frame){.recorded = 1, .record = &record});
}

static void on_refuse(struct world *world, struct broker *broker, struct order *order, uint8_t how) {
  static const char why[] =
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "x\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9";
  struct cv_rank_refused refused = {.campaign = order->id,
                                    .plan = order->asked.number + (how >> 7),
                                    .reason = (enum cv_end)(how % CV_END_COUNT),
                                    .why = why + (how >> 3 & 1),
                                    .asked = how,
                                    .left = 1};
  say(world, broker, &(struct cv_rank_frame){.refused = 1, .refuse = &refused});
}

static void on_stop(struct world *world, struct broker *broker, struct order *order, uint8_t how) {
  struct cv_rank_stop stop = {.campaign = order->id, .reason = (enum cv_end)(how % CV_END_COUNT)};
  say(world, broker, &(struct cv_rank_frame){.stops = 1, .stop = &stop});
}

static void on_close(struct world *world, struct broker *broker, struct order *order, uint8_t how) {
  uint64_t id = order->id;
  struct cv_rank_open open = {.spec = order->spec, .position = position_of(order)};
  struct cv_rank_frame frame = {.opens = how >> 7, .open = &open, .closed = 1, .close = &id};
  if (order->spec.arms > 0) {
    say(world, broker, &frame);
  }
}

typedef void event_fn(struct world *world, struct broker *broker, struct order *order, uint8_t how);
static event_fn *const events[] = {on_connect,      on_vanish, on_open,         on_accept, on_release, on_resend,
                                   on_bent_release, on_close,  on_foreign_plan, on_refuse, on_stop};

/* The next bytes, as if from the network. */
static void on_raw(struct world *world, struct broker *broker, struct cv_reader *in) {
  static struct cv_arena arena;
  struct cv_rank_frame frame;
  size_t n = cv_read_u8(in), left = (size_t)(in->end - in->at);
  n = n < left ? n : left;
  if (arena.base == NULL) {
    CV_REQUIRE(cv_arena_init(&arena, CV_ARENA_BYTES) == CV_OK);
  }
  if (cv_rank_decode(cv_read(in, n), n, &arena, &frame) != CV_OK) {
    on_vanish(world, broker, NULL, 0); /* the lane is closed */
    return;
  }
  for (size_t i = 0; i < CAMPAIGNS; i++) { /* its messages are not kept here */
    broker->order[i].foreign = broker->order[i].foreign || frame.recorded + frame.releases > 0;
  }
  if (frame.opens == 0) {
    say(world, broker, &frame);
  }
}

/* A byte for the event (its lowest bit selects the broker) and one for its details. */
static void event(struct world *world, struct cv_reader *in) {
  uint8_t what = cv_read_u8(in), how = cv_read_u8(in);
  struct broker *broker = &world->broker[what & 1];
  struct order *order = &broker->order[(what >> 1 & 3) % CAMPAIGNS];
  size_t which = what >> 3 & 15;
  if (which < CV_COUNT(events)) {
    events[which](world, broker, order, how);
  } else if (which == 11 && broker->conn != NULL) {
    on_raw(world, broker, in);
  } else if (which == 12) {
    flush(world);
  } else if (which == 13) {
    commit(world);
  } else if (which == 14) {
    crash(world, (how & 1) != 0);
  } else {
    flush(world);
    commit(world);
  }
}

static void world_end(struct world *world) {
  for (size_t i = 0; i < 3; i++) {
    flush(world);
    commit(world);
  }
  crash(world, true);
  for (const struct shelf *shelf = world->disk.first; shelf != NULL; shelf = shelf->next) {
    struct broker *broker = &world->broker[strcmp(shelf->key.broker, names[0]) == 0 ? 0 : 1];
    const struct order *order = order_of(broker, shelf->key.campaign);
    bool agrees = disk_replays(shelf);
    CV_REQUIRE(agrees || order == NULL || order->foreign);
  }
  cv_thirdparty_free(world->thirdparty);
  disk_fini(&world->disk);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  static struct world world; /* large */
  struct cv_reader in = cv_reader_over(bytes, n);
  world = (struct world){0};
  cv_rng_seeded_init(&world.rng, 1, 0, 0, 0);
  for (size_t i = 0; i < BROKERS; i++) {
    for (size_t j = 0; j < CAMPAIGNS; j++) {
      world.broker[i].order[j].id = j + 1;
    }
  }
  start(&world);
  for (int i = 0; i < EVENTS && in.at < in.end; i++) {
    event(&world, &in);
  }
  world_end(&world);
  return 0;
}
