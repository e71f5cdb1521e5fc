/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of two brokers and the database that they share. */
#include "tests/sim/faults.h"
#include "tests/sim/net.h"
#include "tests/sim/server.h"
#include "tests/sim/standby.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"

struct party *faults_some_broker(struct world *world, enum fault fault) {
  if (world->server == NULL) {
    return world->broker;
  }
  standby_shaken(world, fault);
  if (world->active != NULL && world_chance(world, 70)) {
    return world->active;
  }
  return world_chance(world, 50) ? world->broker : world->second;
}

static void put_back(struct world *world, struct event *event) {
  server_put_back(world->server);
  world_log(world, "fault: the server has the right database again");
}

/* An operator's mistake: the server gets an older copy, or a fork of one. Both brokers must refuse it. */
static void restore(struct world *world) {
  enum { MISTAKE_MS = 6000 };
  uint64_t first = truth_anchor_of(world->broker), second = truth_anchor_of(world->second);
  server_copy(world->server);
  if (server_restore(world->server, first < second ? first : second)) {
    world_log(world, "fault: the server has another database");
    world_at(world, world_below(world, MISTAKE_MS), put_back, NULL, NULL, 0);
  }
}

/* The next load fails, and soon there is one: the active broker is killed or asked to stop, or loses its session. */
static void harm(struct world *world) {
  enum { BACK_MS = 1500 };
  struct party *active = world->active;
  enum harm kind = (enum harm)(1 + world_below(world, HARM_COUNT - 1));
  world_log(world, "fault: the next load %s",
            kind == HARM_LOST      ? "loses its session"
            : kind == HARM_DAMAGED ? "reads a damaged row"
                                   : "is overtaken");
  server_harm(world->server, kind, 1 + (uint32_t)world_below(world, 12));
  if (active == NULL || world_chance(world, 20)) {
    return;
  }
  if (kind == HARM_OVERTAKEN) { /* until the active one is back, so that one is there to overtake */
    struct party *other = active == world->broker ? world->second : world->broker;
    faults_stand_still(other, BACK_MS);
  }
  if (world_chance(world, 40)) {
    world_log(world, "fault: the connection to the server is cut");
    server_cut(world->server);
  } else if (world_chance(world, 50)) {
    broker_drain(active);
  } else {
    active->dead = true;
  }
}

static void thawed(struct world *world, struct event *event) {
  const struct party *party = event->about;
  tally_add(TALLY_REPLACED, party->up && world->active != NULL && world->active != party);
}

/* SIGSTOP, or a paused machine: long enough that another one takes over; what was begun is done when it goes on. */
static void freeze(struct world *world) {
  enum { LEAST_MS = 6000, MORE_MS = 8000 };
  struct party *party = world->active;
  if (party != NULL) {
    uint64_t ms = LEAST_MS + world_below(world, MORE_MS);
    world_log(world, "fault: broker %u is frozen for %llu ms", party->number, (unsigned long long)ms);
    faults_stand_still(party, ms);
    tally(TALLY_FROZEN);
    world_at(world, ms, thawed, NULL, party, 0);
  }
}

void faults_of_server(struct world *world, enum fault fault) {
  standby_shaken(world, fault);
  switch (fault) {
    case FAULT_COMMIT:
      server_next(world->server, (enum fate)(1 + world_below(world, FATE_COUNT - 1)));
      break;
    case FAULT_CUT_SERVER:
      world_log(world, "fault: the connection to the server is cut");
      server_cut(world->server);
      break;
    case FAULT_PROMOTE:
      world_log(world, "fault: the replica is promoted");
      tally(TALLY_PROMOTED);
      server_promote(world->server);
      break;
    case FAULT_LOAD:
      harm(world);
      break;
    case FAULT_FREEZE:
      freeze(world);
      break;
    default:
      restore(world);
      break;
  }
}
