/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/faults.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "broker/repair.h"
#include "tests/sim/cobroker.h"
#include "tests/sim/lies.h"
#include "tests/sim/net.h"
#include "tests/sim/rotation.h"
#include "tests/sim/server.h"
#include "tests/sim/standby.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"

static void crash(struct world *world, struct party *party) {
  if (!party->up) {
    return;
  }
  if (party->disk != NULL && world_chance(world, 75)) {
    party->disk->fuse = 1 + (int)world_below(world, 50);
    world_log(world, "fault: %s dies in %d steps", party->identity.name, party->disk->fuse);
  } else if (party->ops == &party_pool && world_chance(world, 50)) {
    party->fuse = 1 + (int)world_below(world, 12);
  } else {
    party->dead = true;
  }
}

static void refuse_writes(struct world *world, struct disk *disk) {
  disk->refuse_in = 1 + (int)world_below(world, 12);
  disk->refusal = world_chance(world, 50) ? DISK_IS_FULL : DISK_FAILS;
  disk->refuse_for = 1 + (int)world_below(world, disk->refusal == DISK_IS_FULL && world_chance(world, 30) ? 60 : 3);
  world_log(world, "fault: disk %c refuses %d of its writes", disk->letter, disk->refuse_for);
}

/* The third-party's machine is destroyed; its replacement starts with an empty disk. An older copy does not do: its
 * seeds may be ones that the broker never stored, and a third-party that went back to it would rightly be refused. */
static void lose_thirdparty(struct world *world) {
  world->scenario.weight[FAULT_LOSE_THIRDPARTY] = 0;
  world_log(world, "fault: the third-party's database is lost");
  tally(TALLY_THIRDPARTY_LOST);
  if (world->thirdparty->up) {
    party_die(world->thirdparty, 10 + world_below(world, 500));
  }
  disk_wipe(&world->disk_thirdparty);
  disk_copy_fini(&world->snapshot_thirdparty);
  world->has_snapshot_thirdparty = false;
  truth_thirdparty_lost(world->truth);
}

/* The third-party's database is replaced by an older copy; the broker sends it the records that it lacks. */
static void age_thirdparty(struct world *world) {
  struct disk *disk = &world->disk_thirdparty;
  if (!world->has_snapshot_thirdparty) {
    disk_copy_durable(disk, "T/", &world->snapshot_thirdparty);
    world->has_snapshot_thirdparty = true;
    world_log(world, "fault: the third-party's disk is copied");
    return;
  }
  world->scenario.weight[FAULT_OLDER_THIRDPARTY] = 0;
  world_log(world, "fault: the third-party goes back to an older copy");
  tally(TALLY_THIRDPARTY_OLDER);
  if (world->thirdparty->up) {
    party_die(world->thirdparty, 10 + world_below(world, 500));
  }
  disk_put_back(disk, "T/", &world->snapshot_thirdparty);
  truth_thirdparty_lost(world->truth);
}

/* From here on the requester starts again, with a broker that has lost some of its state. */
static void begin_anew(struct world *world) {
  truth_rolled_back(world->truth);
  world->rolled_back = true;
  /* Gateways remember tokens that the broker has forgotten, so other campaigns may find no worker left. Hired
   * workers have epsilon for more tokens, and after a recovery a campaign has a new number. */
  world->scenario.campaigns = world->recovered && world->scenario.budget_micro > 0 ? 2 : 1;
  world->done = 0;
  if (world->requester[0]->up) {
    party_die(world->requester[0], 20);
  }
}

/* The operator recovers the broker. The power may fail during the recovery, which is then repeated. */
static void recover(struct world *world) {
  struct disk *disk = &world->disk_broker;
  const struct cv_broker_config config = {.limits = {.worker_epsilon_micro = world->scenario.worker_epsilon_micro,
                                                     .release_tokens = world->scenario.release_tokens,
                                                     .chunks = 64},
                                          .digest = cv_sha256};
  const struct cv_repair repair = {.files = {.database = "B/broker.db", .anchor = "B/anchor", .vfs = CV_SIM_VFS},
                                   .ring = &world->ring,
                                   .config = &config,
                                   .lost = truth_snapshot_is_empty(world->truth),
                                   .wall_ms = world_wall_ms(world)};
  struct cv_repaired repaired;
  struct cv_why why = {.text = ""};
  disk->refuse_in = 0;
  disk->fuse = world_chance(world, 60) ? 1 + (int)world_below(world, 60) : 0;
  enum cv_err err = cv_repair_run(&cv_broker_repair, &repair, &repaired, &why);
  if (disk->dead || err != CV_OK) {
    world_log(world, "fault: the recovery dies in the middle: %s", why.text);
    disk_after_power_loss(disk, world->rng);
    disk->fuse = 0;
    err = cv_repair_run(&cv_broker_repair, &repair, &repaired, &why);
    if (err == CV_ERR_IO && repair.lost) { /* a new database that is half made; no file of this disk can be renamed */
      disk_put_back(disk, "B/broker.db", &world->snapshot);
      err = cv_repair_run(&cv_broker_repair, &repair, &repaired, &why);
    }
  }
  disk->fuse = 0;
  if (err != CV_OK) {
    world_fail(world, "3: the older database cannot be recovered: %s", why.text);
  }
  tally(TALLY_RECOVERED);
  world_log(world, "fault: the broker is recovered from an older database");
  world->recovered = true;
  begin_anew(world);
}

/* An older database with a newer anchor: the broker must refuse to start. */
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
  tally_add(TALLY_BROKER_OLDER, !started);
  world_log(world, "fault: broker on an older database: %s", started ? "starts, it is the same" : why.text);
  world->disk_broker.dead = true;
  broker->ops->stop(broker);
  broker->self = NULL;
  disk_after_kill(&world->disk_broker, world->rng);
  if (!started && world->scenario.requesters == 1 && world_chance(world, 60)) {
    recover(world);
  } else {
    disk_put_back(&world->disk_broker, "B/broker.db", &now);
  }
  disk_copy_fini(&now);
}

/* Anchor and database are both old: only the third-party can detect it. */
static void go_back_together(struct world *world) {
  disk_put_back(&world->disk_broker, "B/", &world->snapshot);
  world_log(world, "fault: broker and anchor go back");
  tally(TALLY_BOTH_OLDER);
  begin_anew(world);
}

static void roll_back(struct world *world) {
  struct party *broker = world->broker;
  if (!world->has_snapshot) {
    disk_copy_durable(&world->disk_broker, "B/", &world->snapshot);
    world->has_snapshot = true;
    truth_snapshot(world->truth);
    rotation_snapshot(world);
    world_log(world, "fault: the broker's disk is copied");
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
  rotation_put_back(world);
  if (world->scenario.rollback == ROLLBACK_DATABASE) {
    go_back_alone(world);
  } else {
    go_back_together(world);
  }
}

/* ---- a disk that loses data, or a file that is edited ---- */

static sqlite3 *open_raw(void) {
  sqlite3 *db;
  bool good = sqlite3_open_v2("B/broker.db", &db, SQLITE_OPEN_READWRITE, CV_SIM_VFS) == SQLITE_OK &&
              sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL) == SQLITE_OK;
  if (!good) {
    (void)sqlite3_close(db);
  }
  return good ? db : NULL;
}

/* A hash of every row that the broker reads; 0 if the rows cannot be read. */
static uint64_t content(void) {
  /* A start may wrap keys anew: of them only the places. */
  static const char *const tables[] = {"meta",    "campaign", "plan",
                                       "release", "ledger",   "recovery",
                                       "journal", "chunk",    "(SELECT campaign, use FROM wrapped_key)"};
  sqlite3 *db = open_raw();
  uint64_t sum = 1;
  for (size_t i = 0; db != NULL && sum != 0 && i < CV_COUNT(tables); i++) {
    sqlite3_stmt *stmt;
    char sql[80];
    int code = SQLITE_ERROR;
    (void)snprintf(sql, sizeof(sql), "SELECT * FROM %s", tables[i]);
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK) {
      while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (int j = 0; j < sqlite3_column_count(stmt); j++) {
          const uint8_t *bytes = sqlite3_column_blob(stmt, j);
          for (int k = 0; k < sqlite3_column_bytes(stmt, j); k++) {
            sum = cv_mix64(sum ^ bytes[k]);
          }
          sum = cv_mix64(sum + 1);
        }
      }
    }
    (void)sqlite3_finalize(stmt);
    sum = code == SQLITE_DONE ? sum : 0;
  }
  (void)sqlite3_close(db);
  return db == NULL ? 0 : sum;
}

/* The number of the last commit; 0 if it cannot be read. */
static uint64_t last_commit(void) {
  sqlite3 *db = open_raw();
  sqlite3_stmt *stmt = NULL;
  sqlite3_int64 commit = 0;
  if (db != NULL && sqlite3_prepare_v2(db, "SELECT last_commit FROM meta", -1, &stmt, NULL) == SQLITE_OK &&
      sqlite3_step(stmt) == SQLITE_ROW) {
    commit = sqlite3_column_int64(stmt, 0);
  }
  (void)sqlite3_finalize(stmt);
  (void)sqlite3_close(db);
  return (uint64_t)commit;
}

/* Flips one bit of the database or of its log. */
static bool flip_bit(struct world *world) {
  struct disk copy;
  const char *name = world_chance(world, 50) ? "B/broker.db" : "B/broker.db-wal";
  bool flipped = false;
  disk_copy_durable(&world->disk_broker, "B/", &copy);
  for (size_t i = 0; i < DISK_FILES; i++) {
    struct disk_file *file = &copy.file[i];
    if (strcmp(file->name, name) == 0 && file->durable_n > 0) {
      file->durable[world_below(world, file->durable_n)] ^= (uint8_t)(1U << world_below(world, 8));
      flipped = true;
    }
  }
  disk_put_back(&world->disk_broker, "B/", &copy);
  disk_copy_fini(&copy);
  return flipped;
}

/* Changes that an attacker without the key can make. */
static void edit_rows(struct world *world) {
  static const char *const edits[] = {
      "UPDATE release SET image = CAST(substr(image, 1, 24) || char(97 + number % 7) || substr(image, 26) AS BLOB)",
      "DELETE FROM release WHERE number = (SELECT max(number) FROM release)",
      "DELETE FROM journal WHERE id = (SELECT max(id) FROM journal)",
      "DELETE FROM chunk WHERE number = (SELECT min(number) FROM chunk)",
      "UPDATE ledger SET image = zeroblob(length(image))",
      "UPDATE meta SET tokens = tokens / 2",
      "UPDATE campaign SET state = NULL",
      "UPDATE journal SET sealed = (SELECT sealed FROM journal LIMIT 1)",
      "DELETE FROM wrapped_key WHERE campaign = (SELECT max(campaign) FROM wrapped_key)",
      "UPDATE wrapped_key SET wrapped = (SELECT wrapped FROM wrapped_key WHERE use = 3) WHERE use = 1",
      "UPDATE wrapped_key SET master = zeroblob(8) WHERE use = 2",
  };
  sqlite3 *db = open_raw();
  if (db != NULL) {
    (void)sqlite3_exec(db, edits[world_below(world, CV_COUNT(edits))], NULL, NULL, NULL);
    (void)sqlite3_close(db);
  }
}

/*
 * The damage is detected at the next start, or it is harmless: every row is unchanged. Then a copy is restored. A
 * commit without an anchor, of which no peer was sent anything, could rightly be lost with the log: such a disk is left
 * alone.
 */
static void damage(struct world *world) {
  struct party *broker = world->broker;
  struct disk *disk = &world->disk_broker;
  struct disk good;
  struct cv_why why = {.text = ""};
  if (broker->up) {
    party_die(broker, 10 + world_below(world, 500));
  }
  disk_after_power_loss(disk, world->rng);
  disk->refuse_in = disk->fuse = 0;
  disk_copy_durable(disk, "B/", &good);
  uint64_t before = last_commit() > truth_anchored(world) ? 0 : content();
  disk_put_back(disk, "B/", &good);
  if (before != 0) {
    if (world_chance(world, 50)) {
      (void)flip_bit(world);
    } else {
      edit_rows(world);
    }
    broker->life++;
    bool started = broker->ops->start(broker, &why);
    disk->dead = true;
    broker->ops->stop(broker);
    broker->self = NULL;
    disk->dead = false;
    disk_after_kill(disk, world->rng);
    if (started && content() != before) {
      world_fail(world, "the broker started on rows that it has not stored");
    }
    tally_add(TALLY_BROKER_DAMAGED, !started);
    world_log(world, "fault: the broker's disk is damaged: %s", started ? "no row of it" : why.text);
  }
  disk_put_back(disk, "B/", &good);
  disk_copy_fini(&good);
}

/* Changes the wall clock, which only the broker reads: the other parties use the monotonic clock or none. */
static void jump(struct world *world) {
  int64_t by = ((int64_t)world_below(world, 20000) - 10000) * (world_chance(world, 20) ? 1000 : 1);
  world->wall_jump_ms += by;
  world->jumps++;
  tally(by >= 0 ? TALLY_JUMP_FORWARD : TALLY_JUMP_BACK);
  world_log(world, "fault: the clock jumps by %lld ms, %lld from true time", (long long)by,
            (long long)world->wall_jump_ms);
}

void faults_stand_still(struct party *party, uint64_t ms) {
  uint64_t until_ms = party->world->now_ms + ms;
  party->stalled_ms = until_ms > party->stalled_ms ? until_ms : party->stalled_ms;
  party->stood_ms = until_ms > party->stood_ms ? until_ms : party->stood_ms;
}

/* The machine stops for a while, as when a virtual machine is migrated: all its overdue events then happen at once. */
static void stall(struct world *world, struct party *party) {
  uint64_t ms = 50 + world_below(world, world_chance(world, 30) ? 8000 : 800);
  faults_stand_still(party, ms);
  tally(TALLY_STALLS);
  world_log(world, "fault: %s stands still for %llu ms", party->identity.name, (unsigned long long)ms);
}

static void starve(struct world *world) {
  struct party *const parties[] = {faults_some_broker(world, FAULT_MEMORY), world->thirdparty,
                                   &world->party[world->first_pool + world_below(world, world->scenario.pools)],
                                   world->cobroker};
  struct party *party = parties[world_below(world, CV_COUNT(parties) - (world->cobroker == NULL))];
  party->starves = 1 + world_below(world, world_chance(world, 50) ? 3 : 40);
  world_log(world, "fault: allocation %llu of a call of %s will fail", (unsigned long long)party->starves,
            party->identity.name);
}

static void cut(struct world *world, struct cable *cable) {
  if (cable != NULL) {
    world_log(world, "fault: connection %llu is cut", (unsigned long long)cable->number);
    net_cut(world, cable);
  }
}

/* A gateway's certificate is revoked, and it gets another one of the same name. The co-broker closes its connection,
 * and what it sent before then has no session any more. */
static void revoke(struct world *world) {
  struct party *pool = &world->party[world->first_pool + world_below(world, world->scenario.pools)];
  if (!world->cobroker->up) {
    return;
  }
  world_log(world, "fault: a certificate of %s is revoked", pool->identity.name);
  tally(TALLY_REVOKED);
  cobroker_revoke(world->cobroker, pool->identity.serial);
  (void)snprintf(pool->identity.serial, sizeof(pool->identity.serial), "%X%llX", pool->number,
                 (unsigned long long)world->faults);
  cut(world, net_between(world, pool, world->cobroker));
}

static void do_fault_of_cobroker(struct world *world, enum fault fault) {
  switch (fault) {
    case FAULT_CRASH_COBROKER:
      crash(world, world->cobroker);
      break;
    case FAULT_DISK_COBROKER:
      refuse_writes(world, &world->disk_cobroker);
      break;
    case FAULT_CUT_COBROKER:
      cut(world, net_any_of(world, world->cobroker));
      break;
    case FAULT_REVOKE:
      revoke(world);
      break;
    case FAULT_ROLLBACK_COBROKER:
      faults_roll_back_cobroker(world);
      break;
    default:
      break;
  }
}

static void do_fault(struct world *world, enum fault fault) {
  switch (fault) {
    case FAULT_CUT:
      cut(world, net_any(world));
      break;
    case FAULT_CRASH_BROKER:
      crash(world, faults_some_broker(world, fault));
      break;
    case FAULT_CRASH_THIRDPARTY:
      crash(world, world->thirdparty);
      break;
    case FAULT_CRASH_POOL:
      crash(world, &world->party[world->first_pool + world_below(world, world->parties - world->first_pool)]);
      break;
    case FAULT_CRASH_REQUESTER:
      crash(world, world->requester[world_below(world, world->scenario.requesters)]);
      break;
    case FAULT_DISK_BROKER:
      refuse_writes(world, faults_some_broker(world, fault)->disk);
      break;
    case FAULT_DISK_THIRDPARTY:
      refuse_writes(world, &world->disk_thirdparty);
      break;
    case FAULT_JUMP:
      jump(world);
      break;
    case FAULT_STALL:
      stall(world, world->server != NULL && world_chance(world, 50)
                       ? faults_some_broker(world, fault)
                       : &world->party[world_below(world, world->parties)]);
      break;
    case FAULT_MEMORY:
      starve(world);
      break;
    case FAULT_OLDER_THIRDPARTY:
      age_thirdparty(world);
      break;
    case FAULT_LOSE_THIRDPARTY:
      lose_thirdparty(world);
      break;
    case FAULT_FULL_POOL:
      world->party[world->first_pool + world_below(world, world->scenario.pools)].is_full = true;
      break;
    case FAULT_DRAIN:
      broker_drain(faults_some_broker(world, fault));
      break;
    case FAULT_ROLLBACK:
      roll_back(world);
      break;
    case FAULT_DAMAGE:
      damage(world);
      break;
    case FAULT_COMMIT:
    case FAULT_CUT_SERVER:
    case FAULT_PROMOTE:
    case FAULT_RESTORE:
    case FAULT_LOAD:
    case FAULT_FREEZE:
      faults_of_server(world, fault);
      break;
    case FAULT_ROTATE:
      if (world_chance(world, 40)) {
        world->disk_broker.fuse = 1 + (int)world_below(world, 30);
      }
      rotation_begin(world);
      break;
    default:
      do_fault_of_cobroker(world, fault);
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
  if (world->scenario.lie != LIE_NONE) {
    lies_meet_again(world, world->scenario.lie_ms);
  }
  world_at(world, world_below(world, 400), next, NULL, NULL, 0);
}

void faults_end(struct world *world) {
  if (world->calm_ms == 0) {
    world->calm_ms = world->now_ms + 1;
    world->disk_broker.refuse_in = world->disk_thirdparty.refuse_in = 0;
    world->disk_broker.fuse = world->disk_thirdparty.fuse = 0;
    world->disk_cobroker.refuse_in = world->disk_cobroker.fuse = 0;
    world->disk_second.refuse_in = world->disk_second.fuse = 0;
    if (world->server != NULL) {
      server_calm(world->server);
      standby_shaken(world, world->shaken_by);
    }
    for (size_t i = 0; i < world->parties; i++) {
      world->party[i].stalled_ms = world->server != NULL && world->party[i].ops == &party_broker
                                       ? world->party[i].stalled_ms /* frozen ones stay so, or do half of their work */
                                       : 0;
      world->party[i].starves = 0;
      world->party[i].fuse = 0;
      world->party[i].is_full = false;
    }
    world_log(world, "from here on nothing goes wrong");
  }
}
