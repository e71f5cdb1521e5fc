/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/grid.h"
#include "tests/sim/faults.h"
#include "tests/sim/net.h"
#include "tests/sim/parts.h"
#include "tests/sim/persons.h"
#include "tests/sim/rotation.h"
#include "tests/sim/server.h"
#include "tests/sim/standby.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"
#include "tests/sim/two.h"
#include "tests/support/alloc_fault.h"
#include "worker/split.h"

enum {
  EVENTS_MAX = 400000,
  EVENTS_WAITING = 8192,
  UPTIME_MS = 5000,
  PATIENCE_MS = 600000,
  QUIET_MS = 4000,
  RESTART_MS = 1200
};
static const uint64_t EPOCH_MS = UINT64_C(1800000000000);

/* ---- lines ---- */

void world_log(struct world *world, const char *fmt, ...) {
  char *line = world->line[world->lines++ % WORLD_LINES];
  int n = snprintf(line, WORLD_LINE, "%8llu ms  ", (unsigned long long)world->now_ms);
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(line + n, (size_t)(WORLD_LINE - n), fmt, args);
  va_end(args);
  if (world->verbose) {
    (void)fprintf(stderr, "%s\n", line);
  }
}

void world_fail(struct world *world, const char *fmt, ...) {
  if (world->failed) {
    return;
  }
  world->failed = true;
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(world->failure, sizeof(world->failure), fmt, args);
  va_end(args);
  world_log(world, "FAILED");
}

void world_tell(const struct world *world) {
  uint64_t from = world->lines > WORLD_LINES ? world->lines - WORLD_LINES : 0;
  for (uint64_t i = from; i < world->lines; i++) {
    (void)fprintf(stderr, "  %s\n", world->line[i % WORLD_LINES]);
  }
  (void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)world->scenario.seed, world->failure);
}

/* ---- chance and time ---- */

uint64_t world_below(struct world *world, uint64_t bound) {
  return cv_rng_below(world->rng, bound);
}

bool world_chance(struct world *world, uint32_t percent) {
  return cv_rng_below(world->rng, 100) < percent;
}

uint64_t world_wall_ms(const struct world *world) {
  return (uint64_t)((int64_t)(EPOCH_MS + world->now_ms) + world->wall_jump_ms);
}

uint64_t party_mono_ms(const struct party *party) {
  return UPTIME_MS + party->world->now_ms - party->boot_ms;
}

int64_t world_score(const struct scenario *scenario, uint32_t arm, uint64_t place) {
  uint64_t bits = cv_mix64(cv_mix64(scenario->seed ^ UINT64_C(0x5eed)) + place * SCENARIO_ARMS + arm);
  double spread = (double)(bits >> 11) / 9007199254740992.0 - 0.5;
  if (scenario->pairs) { /* whoever the opponent is */
    return spread + 0.5 < scenario->mean[arm] ? CV_GRID : 0;
  }
  return cv_grid_from(scenario->mean[arm] + 0.4 * spread);
}

int64_t world_value(const struct scenario *scenario, uint32_t arm, uint64_t place) {
  const struct cv_opinion opinion = {.arm = arm, .number = place};
  struct cv_coin coin;
  cv_coin_init(&coin, scenario->coin_key, &scenario->applied.law, &opinion);
  int64_t value = cv_privatizer_apply(&scenario->applied, arm, world_score(scenario, arm, place), &coin.bits.rng);
  return scenario->two ? (int64_t)(world_measured(scenario, arm, place, value) * cv_split_scale(scenario->score_bits))
                       : value;
}

uint64_t world_measured(const struct scenario *scenario, uint32_t arm, uint64_t place, int64_t value) {
  const struct cv_opinion opinion = {.arm = arm, .number = place};
  struct cv_coin coin;
  uint64_t measurement;
  cv_coin_init(&coin, scenario->coin_key, NULL, &opinion);
  CV_REQUIRE(cv_worker_measure(scenario->score_bits, value, &coin.bits.rng, &measurement));
  return measurement;
}

int64_t world_shown(const struct scenario *scenario, uint32_t played, uint64_t place, uint32_t arm) {
  enum { PLACE_BITS = 40 }; /* each played arm has a range for every neighbour's stream */
  uint64_t at = played == arm ? place : place + (((uint64_t)played + 1) << PLACE_BITS);
  return world_value(scenario, arm, at);
}

/* ---- events ---- */

static bool is_before(const struct event *a, const struct event *b) {
  return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->turn < b->turn;
}

static void push(struct world *world, const struct event *event) {
  CV_REQUIRE(CV_ARRAY_ROOM(world->heap, world->heap_n + 1, world->heap_cap) == CV_OK);
  size_t at = world->heap_n++;
  for (; at > 0 && is_before(event, &world->heap[(at - 1) / 2]); at = (at - 1) / 2) {
    world->heap[at] = world->heap[(at - 1) / 2];
  }
  world->heap[at] = *event;
  if (world->heap_n > EVENTS_WAITING) {
    world_fail(world, "6: %zu events wait", world->heap_n);
  }
}

void world_at(struct world *world, uint64_t delay_ms, void (*run)(struct world *, struct event *), struct party *party,
              void *about, int which) {
  struct event event = {.at_ms = world->now_ms + delay_ms,
                        .turn = ++world->turn,
                        .run = run,
                        .party = party,
                        .life = party == NULL ? 0 : party->life,
                        .about = about,
                        .which = which};
  push(world, &event);
}

static struct event pop(struct world *world) {
  struct event top = world->heap[0], last = world->heap[--world->heap_n];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child + 1 < world->heap_n && is_before(&world->heap[child + 1], &world->heap[child])) {
      child++;
    }
    if (child >= world->heap_n || !is_before(&world->heap[child], &last)) {
      break;
    }
    world->heap[at] = world->heap[child];
    at = child;
  }
  world->heap[at] = last;
  return top;
}

static void on_timer(struct world *world, struct event *event) {
  event->party->ops->timer(event->party, event->which);
}

void party_after(struct party *party, uint64_t delay_ms, int which) {
  world_at(party->world, delay_ms, on_timer, party, NULL, which);
}

/* ---- parties ---- */

void party_self_new(struct party *party, size_t size) {
  party->self = calloc(1, size);
  CV_REQUIRE(party->self != NULL);
}

void party_self_free(struct party *party) {
  free(party->self);
}

void party_opened(struct party *party, struct end *end) {
  party->end = end;
  party->greeted = false;
}

void party_closed(struct party *party, struct end *end) {
  party->end = party->end == end ? NULL : party->end;
}

void party_enter(struct party *party) {
  if (party->starves > 0) {
    struct alloc_fault fault = {.nth = party->starves - 1};
    (void)alloc_fault_next(&fault);
    alloc_fault_arm();
  }
}

void party_leave(struct party *party) {
  if (party->starves == 0) {
    return;
  }
  alloc_fault_pause();
  if (alloc_fault_hit()) {
    world_log(party->world, "%s: is out of memory", party->identity.name);
    tally(TALLY_STARVED);
    party->starves = 0;
    party->exits = true;
  }
}

bool party_step(struct party *party) {
  if (party->disk != NULL && !disk_step(party->disk)) {
    party->dead = true;
  }
  if (party->fuse > 0 && --party->fuse == 0) {
    party->dead = true;
  }
  return !party->dead;
}

struct party *world_add(struct world *world, const struct party_ops *ops, enum cv_role role, const char *name,
                        uint64_t first, uint64_t last) {
  CV_REQUIRE(world->parties < WORLD_PARTIES);
  struct party *party = &world->party[world->parties];
  struct cv_digest key;
  cv_sha256(&role, sizeof(role), name, strlen(name), &key);
  *party = (struct party){.ops = ops,
                          .world = world,
                          .identity = {.role = role, .first = first, .last = last, .key = key},
                          .number = (uint32_t)world->parties++};
  (void)snprintf(party->identity.name, sizeof(party->identity.name), "%s", name);
  (void)snprintf(party->identity.serial, sizeof(party->identity.serial), "%X", party->number);
  return party;
}

static void start_again(struct world *world, struct event *event) {
  struct party *party = event->about;
  if (!party->up) {
    party_start(party);
  }
}

void party_start(struct party *party) {
  struct cv_why why = {.text = ""};
  party->life++;
  party->up = true;
  if (party->rebooted) {
    party->boot_ms = party->world->now_ms;
    party->rebooted = false;
  }
  party->dead = party->exits = false;
  party->listens = true;
  party->fuse = 0;
  world_log(party->world, "%s: starts", party->identity.name);
  if (party->ops->start(party, &why)) {
    tally_add(TALLY_RESTARTS, party->life > 1 && party->disk != NULL);
    if (!party->stays_away) {
      net_started(party);
    }
    return;
  }
  bool died = party->disk != NULL && (party->disk->dead || party->disk->refusals > party->refusals_seen);
  if (!died) {
    world_fail(party->world, "%s refuses to start: %s", party->identity.name, why.text);
  }
  tally(TALLY_START_REFUSED);
  world_log(party->world, "%s: does not start: %s", party->identity.name, why.text);
  party_die(party, world_below(party->world, RESTART_MS));
}

static void count_end(const struct party *party, bool power, bool orderly) {
  bool broker = party == party->world->broker || party == party->world->second;
  if (party == party->world->cobroker && !orderly) {
    tally(power ? TALLY_POWER_COBROKER : TALLY_KILLS_COBROKER);
  } else if (power) {
    tally(broker ? TALLY_POWER_BROKER : TALLY_POWER_THIRDPARTY);
  } else if (orderly) {
    tally(TALLY_STOPS);
  } else {
    tally(broker ? TALLY_KILLS_BROKER : TALLY_KILLS_THIRDPARTY);
  }
}

void party_die(struct party *party, uint64_t restart_ms) {
  struct world *world = party->world;
  bool orderly = party->exits && world_chance(world, 50);
  net_gone(party);
  if (party->disk != NULL && !orderly) {
    party->disk->dead = true;
  }
  party->ops->stop(party);
  party->self = NULL;
  party->end = NULL;
  party->up = party->dead = party->exits = false;
  if (party->disk != NULL) {
    bool power = !orderly && world_chance(world, 60);
    if (power && world_chance(world, 25)) {
      truth_search(world->truth);
    }
    world_log(world, "%s: %s", party->identity.name, power ? "power is lost" : orderly ? "has stopped" : "is killed");
    if (power) {
      disk_after_power_loss(party->disk, world->rng);
      party->rebooted = true;
    } else {
      disk_after_kill(party->disk, world->rng);
    }
    count_end(party, power, orderly);
    party->refusals_seen = party->disk->refusals;
  } else {
    world_log(world, "%s: is killed", party->identity.name);
    party->rebooted = world_chance(world, 30);
    tally(party->number >= world->first_pool ? TALLY_KILLS_POOL : TALLY_KILLS_REQUESTER);
  }
  world_at(world, restart_ms, start_again, NULL, party, 0);
}

static void run_event(struct world *world, struct event *event) {
  struct party *party = event->party;
  if (party != NULL && (!party->up || party->life != event->life)) {
    return;
  }
  if (party != NULL && party->stalled_ms > world->now_ms) {
    event->at_ms = party->stalled_ms;
    event->turn = ++world->turn;
    push(world, event);
    return;
  }
  event->run(world, event);
  for (size_t i = 0; i < world->parties; i++) {
    party = &world->party[i];
    if (party->up && (party->dead || party->exits || (party->disk != NULL && party->disk->dead))) {
      party_die(party, 5 + world_below(world, RESTART_MS));
    }
  }
}

/* ---- the whole ---- */

static void add_crowd(struct world *world) {
  uint32_t n = world->scenario.pools + world->scenario.liars;
  world->given = calloc((uint64_t)n * world->scenario.pool_workers + 1, sizeof(*world->given));
  CV_REQUIRE(world->given != NULL);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t first = 1 + (uint64_t)i * world->scenario.pool_workers, last = first + world->scenario.pool_workers - 1;
    bool honest = i < world->scenario.pools;
    if (!honest && i + 1 == n && world->scenario.seed % 2 == 0) {
      last = 2 * SCENARIO_FAR;
    }
    char name[CV_NAME_BYTES];
    (void)snprintf(name, sizeof(name), "%llu-%llu", (unsigned long long)first, (unsigned long long)last);
    struct party *party = world_add(world,
                                    honest                ? &party_pool
                                    : world->scenario.two ? &party_liar_two
                                                          : &party_liar,
                                    CV_ROLE_GATEWAY, name, first, last);
    party->dials[0] = world->broker;
    party->dials[1] = world->cobroker;
    party->hostile = !honest;
  }
}

static void add_rivals(struct world *world) {
  world->first_rival = world->parties;
  for (uint32_t i = 0; i < world->scenario.rivals; i++) {
    const struct cv_identity identity = rival_identity(&world->scenario, i);
    struct party *party = world_add(world, &party_rival, identity.role, identity.name, identity.first, identity.last);
    party->dials[0] = world->broker;
    party->hostile = true;
  }
}

static void add_requesters(struct world *world) {
  for (uint32_t i = 0; i < world->scenario.requesters; i++) {
    char name[CV_NAME_BYTES];
    (void)snprintf(name, sizeof(name), "requester%u", i + 1);
    world->requester[i] = world_add(world, &party_requester, CV_ROLE_REQUESTER, name, 0, 0);
    world->requester[i]->dials[0] = world->broker;
  }
  if (world->scenario.pests > 0) {
    struct party *pest = world_add(world, &party_pest, CV_ROLE_REQUESTER, "pest", 0, 0);
    pest->dials[0] = world->broker;
    pest->hostile = true;
  }
}

static void add_persons(struct world *world) {
  if (world->scenario.persons) {
    persons_draw(&world->scenario, &world->persons);
    world->row_given = calloc(world->persons.start[world->persons.persons] + 1, sizeof(*world->row_given));
    CV_REQUIRE(world->row_given != NULL);
    tally(TALLY_PERSONS);
  }
}

static void add_second(struct world *world) {
  disk_init(&world->disk_second, 'S');
  world->disk_second.rng = world->rng;
  world->second = world_add(world, &party_broker, CV_ROLE_BROKER, "broker", 0, 0);
  world->second->identity = world->broker->identity;
  world->second->disk = &world->disk_second;
  world->second->dials[0] = world->thirdparty;
  world->server = server_new(world);
  tally(TALLY_SHARED);
}

static void set_up(struct world *world) {
  CV_REQUIRE(cv_arena_init(&world->decoding, CV_ARENA_BYTES) == CV_OK &&
             cv_arena_init(&world->encoding, CV_ARENA_BYTES) == CV_OK);
  CV_REQUIRE(cv_ring_renew(&world->ring, 0) == CV_OK);
  disk_init(&world->disk_broker, 'B');
  disk_init(&world->disk_thirdparty, 'T');
  world->disk_broker.rng = world->disk_thirdparty.rng = world->rng;
  world->broker = world_add(world, &party_broker, CV_ROLE_BROKER, "broker", 0, 0);
  world->thirdparty = world_add(world, &party_thirdparty, CV_ROLE_THIRDPARTY, "thirdparty", 0, 0);
  world->broker->disk = &world->disk_broker;
  world->thirdparty->disk = &world->disk_thirdparty;
  world->broker->dials[0] = world->thirdparty;
  if (world->scenario.shared) {
    add_second(world);
  }
  if (world->scenario.impostor) {
    world->impostor = world_add(world, &party_impostor, CV_ROLE_THIRDPARTY, "impostor", 0, 0);
    world->impostor->hostile = true;
  }
  if (world->scenario.two) {
    disk_init(&world->disk_cobroker, 'C');
    CV_REQUIRE(cv_ring_renew(&world->ring_cobroker, 0) == CV_OK);
    world->disk_cobroker.rng = world->rng;
    world->cobroker = world_add(world, &party_cobroker, CV_ROLE_COBROKER, "cobroker", 0, 0);
    world->cobroker->disk = &world->disk_cobroker;
    world->broker->dials[1] = world->cobroker;
  }
  add_requesters(world);
  world->room = 2 * (world->scenario.requesters * world->scenario.campaigns + 1);
  world->first_pool = world->parties;
  add_persons(world);
  parts_add(world);
  add_crowd(world);
  add_rivals(world);
  world->truth = truth_new(world);
  world->two = two_new(world);
  truth_listen_to_seals(world->truth);
  tally_add(TALLY_RECRUITMENTS, world->scenario.budget_micro > 0);
  tally_add(TALLY_DELTAS, world->scenario.applied.law.delta_pico > 0);
  tally_add(TALLY_MATRICES, world->scenario.applied.law.matrices > 0);
  tally_add(TALLY_GOLDS, world->scenario.golds > 0);
  tally_add(TALLY_SMALLEST, scenario_least(&world->scenario) > 1);
  tally_add(TALLY_GRAPHS, world->scenario.graph);
  tally_add(TALLY_TWO_AT_ONCE, world->scenario.requesters > 1);
  for (size_t i = 0; i < world->parties; i++) {
    world_at(world, world_below(world, 50), start_again, NULL, &world->party[i], 0);
  }
  if (world->server != NULL) {
    standby_watch(world);
  }
  faults_start(world);
}

static bool is_over(const struct world *world, uint64_t finished_ms) {
  return world->failed || (world->finished && world->now_ms > finished_ms + QUIET_MS);
}

bool world_run(struct world *world, uint64_t seed) {
  uint64_t finished_ms = 0;
  cv_rng_seeded_init(&world->seeded, seed, 77, 2, 0);
  world->rng = &world->seeded.rng;
  set_up(world);
  while (!is_over(world, finished_ms)) {
    struct event event = pop(world);
    world->now_ms = event.at_ms;
    run_event(world, &event);
    tally(TALLY_EVENTS);
    if (world->finished && finished_ms == 0) {
      finished_ms = world->now_ms;
      faults_end(world);
    }
    world->finished = world->finished && finished_ms > 0;
    if (++world->events > EVENTS_MAX || world->now_ms > PATIENCE_MS) {
      world_fail(world, "not finished after %llu events and %llu ms", (unsigned long long)world->events,
                 (unsigned long long)world->now_ms);
    }
  }
  if (!world->failed) {
    truth_end(world->truth);
  }
  return !world->failed;
}

void world_fini(struct world *world) {
  rotation_fini(world);
  for (size_t i = 0; i < world->parties; i++) {
    struct party *party = &world->party[i];
    if (party->up) {
      party->ops->stop(party);
    }
  }
  net_fini(world);
  truth_listen_to_seals(NULL);
  two_free(world->two);
  truth_free(world->truth);
  free(world->is_served);
  free(world->given);
  free(world->row_given);
  free(world->taken);
  cv_persons_fini(&world->persons);
  disk_fini(&world->disk_broker);
  disk_fini(&world->disk_thirdparty);
  disk_fini(&world->disk_cobroker);
  disk_fini(&world->disk_second);
  server_free(world->server);
  disk_copy_fini(&world->snapshot);
  disk_copy_fini(&world->snapshot_thirdparty);
  disk_copy_fini(&world->snapshot_cobroker);
  cv_arena_fini(&world->decoding);
  cv_arena_fini(&world->encoding);
  cv_buf_fini(&world->bytes);
  free(world->heap);
}
