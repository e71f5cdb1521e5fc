/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of two brokers and the database that they share. */
#include <stdlib.h>

#include "tests/sim/faults.h"
#include "tests/sim/net.h"
#include "tests/sim/server.h"
#include "tests/sim/tally.h"

struct party *faults_some_broker(struct world *world) {
  if (world->server == NULL) {
    return world->broker;
  }
  if (world->active != NULL && world_chance(world, 70)) {
    return world->active;
  }
  return world_chance(world, 50) ? world->broker : world->second;
}

/* The commit of the broker's anchor, 0 if it has none. */
static uint64_t anchored(const struct party *party) {
  enum { COMMIT_AT = 52 };
  const char name[] = {party->disk->letter, '/', 'a', 'n', 'c', 'h', 'o', 'r', '\0'};
  const struct disk_file *file = disk_find(party->disk, name);
  return file == NULL || file->durable_n <= COMMIT_AT ? 0 : strtoull((const char *)file->durable + COMMIT_AT, NULL, 10);
}

static void put_back(struct world *world, struct event *event) {
  server_put_back(world->server);
  world_log(world, "fault: the server has the right database again");
}

/* An operator's mistake: the server gets an older copy, or a fork of one. Both brokers must refuse it. */
static void restore(struct world *world) {
  enum { MISTAKE_MS = 6000 };
  uint64_t first = anchored(world->broker), second = anchored(world->second);
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
