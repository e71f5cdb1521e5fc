/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/faults.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/net.h"
#include "tests/sim/truth.h"

static void crash(struct world *world, struct party *party) {
  if (!party->up) {
    return;
  }
  if (party->disk != NULL && world_chance(world, 75)) {
    party->disk->fuse = 1 + (int)world_below(world, 50);
    world_log(world, "fault: %s will die in %d steps", party->identity.name, party->disk->fuse);
  } else {
    party->dead = true;
  }
}

static void refuse_writes(struct world *world, struct disk *disk) {
  disk->refuse_in = 1 + (int)world_below(world, 12);
  disk->refuse_for = 1 + (int)world_below(world, 3);
  disk->refusal = world_chance(world, 50) ? DISK_IS_FULL : DISK_FAILS;
  world_log(world, "fault: disk %c will refuse %d of its writes", disk->letter, disk->refuse_for);
}

/* The machine of the third-party burns down; it comes back with an empty disk. */
static void lose_thirdparty(struct world *world) {
  world->scenario.weight[FAULT_LOSE_THIRDPARTY] = 0;
  world_log(world, "fault: the third-party's database is lost");
  if (world->thirdparty->up) {
    party_die(world->thirdparty, 10 + world_below(world, 500));
  }
  disk_wipe(&world->disk_thirdparty);
  truth_thirdparty_lost(world->truth);
}

/* An older database under a newer anchor: the broker must not start on it. */
static void go_back_alone(struct world *world) {
  struct party *broker = world->broker;
  struct disk now;
  struct cv_why why = {.text = ""};
  disk_copy_durable(&world->disk_broker, "B/broker.db", &now);
  disk_put_back(&world->disk_broker, "B/broker.db", &world->snapshot);
  broker->life++;
  bool started = broker->ops->start(broker, &why);
  if (started && truth_is_behind(world->truth)) {
    world_fail(world, "the broker started on a database that is behind its anchor");
  }
  world_log(world, "fault: broker on an older database: %s", started ? "starts, it is the same" : why.text);
  world->disk_broker.dead = true;
  broker->ops->stop(broker);
  broker->self = NULL;
  disk_after_kill(&world->disk_broker);
  disk_put_back(&world->disk_broker, "B/broker.db", &now);
  disk_copy_fini(&now);
}

/* Anchor and database are both old: only the third-party can notice. */
static void go_back_together(struct world *world) {
  disk_put_back(&world->disk_broker, "B/", &world->snapshot);
  truth_rolled_back(world->truth);
  world->rolled_back = true;
  world->scenario.campaigns = 1; /* workers remember what the broker has forgotten: others may find nobody */
  world_log(world, "fault: broker and anchor go back");
  if (world->requester->up) {
    party_die(world->requester, 20);
  }
}

static void roll_back(struct world *world) {
  struct party *broker = world->broker;
  if (!world->has_snapshot) {
    disk_copy_durable(&world->disk_broker, "B/", &world->snapshot);
    world->has_snapshot = true;
    truth_snapshot(world->truth);
    world_log(world, "fault: somebody copies the broker's disk");
    return;
  }
  if (!truth_has_moved(world->truth)) {
    return;
  }
  world->scenario.weight[FAULT_ROLLBACK] = 0;
  if (broker->up) {
    party_die(broker, 10 + world_below(world, 500));
  }
  disk_after_power_loss(&world->disk_broker, world->rng);
  if (world->scenario.rollback == ROLLBACK_DATABASE) {
    go_back_alone(world);
  } else {
    go_back_together(world);
  }
}

static void do_fault(struct world *world, enum fault fault) {
  struct link *link;
  switch (fault) {
    case FAULT_CUT:
      link = net_any(world);
      if (link != NULL) {
        world_log(world, "fault: connection %llu is cut", (unsigned long long)link->number);
        net_cut(world, link);
      }
      break;
    case FAULT_CRASH_BROKER:
      crash(world, world->broker);
      break;
    case FAULT_CRASH_THIRDPARTY:
      crash(world, world->thirdparty);
      break;
    case FAULT_CRASH_CREW:
      crash(world, &world->party[3 + world_below(world, world->parties - 3)]);
      break;
    case FAULT_CRASH_REQUESTER:
      crash(world, world->requester);
      break;
    case FAULT_DISK_BROKER:
      refuse_writes(world, &world->disk_broker);
      break;
    case FAULT_DISK_THIRDPARTY:
      refuse_writes(world, &world->disk_thirdparty);
      break;
    case FAULT_JUMP:
      world->wall_jump_ms += ((int64_t)world_below(world, 20000) - 10000) * (world_chance(world, 20) ? 1000 : 1);
      world_log(world, "fault: the clock jumps to %lld ms from the truth", (long long)world->wall_jump_ms);
      break;
    case FAULT_LOSE_THIRDPARTY:
      lose_thirdparty(world);
      break;
    case FAULT_ROLLBACK:
      roll_back(world);
      break;
    default:
      break;
  }
}

static void next(struct world *world, struct event *event) {
  const uint32_t *weight = world->scenario.weight;
  uint32_t all = 0;
  for (int i = 0; i < FAULT_COUNT; i++) {
    all += weight[i];
  }
  if (all == 0 || world->calm_ms != 0 || world->faults >= world->scenario.faults) {
    faults_end(world);
    return;
  }
  uint64_t chosen = world_below(world, all);
  int fault = 0;
  while (chosen >= weight[fault]) {
    chosen -= weight[fault++];
  }
  world->faults++;
  do_fault(world, (enum fault)fault);
  world_at(world, 1 + world_below(world, 2 * (uint64_t)world->scenario.gap_ms), next, NULL, NULL, 0);
}

void faults_start(struct world *world) {
  world_at(world, world_below(world, 400), next, NULL, NULL, 0);
}

void faults_end(struct world *world) {
  if (world->calm_ms == 0) {
    world->calm_ms = world->now_ms + 1;
    world->disk_broker.refuse_in = world->disk_thirdparty.refuse_in = 0;
    world->disk_broker.fuse = world->disk_thirdparty.fuse = 0;
    world_log(world, "from here on nothing goes wrong");
  }
}
