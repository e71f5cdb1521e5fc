/* SPDX-License-Identifier: Apache-2.0 */
/* The co-broker's disk goes back: alone, which its anchor tells; or with the anchor, which the broker tells. */
#include "cobroker/config.h"
#include "cobroker/repair.h"
#include "tests/sim/faults.h"
#include "tests/sim/tally.h"
#include "tests/sim/two.h"

/* The operator recovers the co-broker. The power may fail during the recovery, which is then repeated. */
static void recover(struct world *world) {
  struct disk *disk = &world->disk_cobroker;
  const struct cv_cobroker_config config = {.limits = {.worker_epsilon_micro = world->scenario.co_epsilon_micro,
                                                       .release_tokens = world->scenario.release_tokens,
                                                       .chunks = 64,
                                                       .kept = 64},
                                            .digest = cv_sha256};
  const struct cv_repair repair = {.files = {.database = "C/cobroker.db", .anchor = "C/anchor", .vfs = CV_SIM_VFS},
                                   .ring = &world->ring_cobroker,
                                   .config = &config,
                                   .lost = world->snapshot_commit == 0,
                                   .wall_ms = world_wall_ms(world)};
  struct cv_repaired repaired;
  struct cv_why why = {.text = ""};
  disk->refuse_in = 0;
  disk->fuse = world_chance(world, 60) ? 1 + (int)world_below(world, 60) : 0;
  enum cv_err err = cv_repair_run(&cv_cobroker_repair, &repair, &repaired, &why);
  if (disk->dead || err != CV_OK) {
    world_log(world, "fault: the co-broker's recovery dies in the middle: %s", why.text);
    disk_after_power_loss(disk, world->rng);
    disk->fuse = 0;
    err = cv_repair_run(&cv_cobroker_repair, &repair, &repaired, &why);
  }
  disk->fuse = 0;
  if (err != CV_OK) {
    world_fail(world, "S4: the co-broker's older database cannot be recovered: %s", why.text);
  }
  tally(TALLY_COBROKER_RECOVERED);
  world_log(world, "fault: the co-broker is recovered from an older database");
  world->forgot = true;
  two_recovered(world->two);
}

static void go_back_alone(struct world *world) {
  struct party *cobroker = world->cobroker;
  struct disk *disk = &world->disk_cobroker;
  struct disk now;
  struct cv_why why = {.text = ""};
  disk_copy_durable(disk, "C/cobroker.db", &now);
  disk_put_back(disk, "C/cobroker.db", &world->snapshot_cobroker);
  cobroker->life++;
  bool started = cobroker->ops->start(cobroker, &why);
  if (started) {
    world_fail(world, "the co-broker started on a database that is behind its anchor");
  }
  tally_add(TALLY_COBROKER_OLDER, !started);
  world_log(world, "fault: co-broker on an older database: %s", why.text);
  disk->dead = true;
  cobroker->ops->stop(cobroker);
  cobroker->self = NULL;
  disk_after_kill(disk, world->rng);
  if (world_chance(world, 60)) {
    recover(world);
  } else {
    disk_put_back(disk, "C/cobroker.db", &now);
  }
  disk_copy_fini(&now);
}

/* Only the broker can tell: it knows of more than the co-broker. */
static void go_back_together(struct world *world) {
  disk_put_back(&world->disk_cobroker, "C/", &world->snapshot_cobroker);
  world_log(world, "fault: co-broker and anchor go back");
  tally(TALLY_COBROKER_BOTH_OLDER);
  world->forgot = true;
  two_rolled_back(world->two);
}

void faults_roll_back_cobroker(struct world *world) {
  struct disk *disk = &world->disk_cobroker;
  if (!world->has_snapshot_cobroker) {
    disk_copy_durable(disk, "C/", &world->snapshot_cobroker);
    world->has_snapshot_cobroker = true;
    world->snapshot_commit = two_commit(world->two);
    world_log(world, "fault: the co-broker's disk is copied");
    return;
  }
  if (two_commit(world->two) <= world->snapshot_commit + 1) {
    return;
  }
  world->scenario.weight[FAULT_ROLLBACK_COBROKER] = 0;
  if (world->cobroker->up) {
    party_die(world->cobroker, 10 + world_below(world, 500));
  }
  disk_after_power_loss(disk, world->rng);
  if (world->scenario.co_rollback == ROLLBACK_DATABASE) {
    go_back_alone(world);
  } else {
    go_back_together(world);
  }
}
