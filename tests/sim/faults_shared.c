/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of two brokers and the database that they share. */
#include "tests/sim/faults.h"
#include "tests/sim/net.h"
#include "tests/sim/server.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"

struct party *faults_some_broker(struct world *world) {
  if (world->server == NULL) {
    return world->broker;
  }
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

void faults_of_server(struct world *world, enum fault fault) {
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
    default:
      restore(world);
      break;
  }
}
