/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/standby.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/standby.h"
#include "tests/sim/mix.h"
#include "tests/sim/remote.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"

enum {
  QUICK_MS = 12,
  SLOW_MS = 300,  /* of a busy server */
  SILENT_MS = 50, /* until it is looked again whether a silent server answers */
  POLL_MS = 200,
  REST_MS = 30000, /* after a failed load: FAILED_LOAD_MS in broker/standby.c */
  WATCH_MS = 50,   /* between two looks at who serves */
  TERMS_MAX = 4096 /* of a world */
};

struct standby {
  struct party *party;
  struct cv_turn *turn;
  const struct standby_ops *ops;
  struct cv_standby core;
  struct broker_anchor anchor;
  /* What the storage thread does. */
  bool works, has_worked;
  enum cv_err err;
  struct cv_why why;
  /* What the broker has. */
  bool has_loaded, serves;
  uint64_t term; /* which it has told, or is to tell */
  uint64_t rests_until_ms;
  /* What it has said. */
  char line[600];
  bool said_active;
};

static struct cv_buf metrics;

static void broken(const struct standby *standby, const char *what, const char *text) {
  world_fail(standby->party->world, "S: broker %u %s: %.300s", standby->party->number, what, text);
}

/* ---- what it says ---- */

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

/* The state is first, then the line, then health. */
static void check_line(const struct standby *standby, const char *text, bool is_active) {
  char status[600], expected[60];
  struct cv_why health;
  bool is_well = cv_standby_health(&standby->core, &health) == CV_OK;
  cv_standby_status(&standby->core, status, sizeof(status));
  (void)snprintf(expected, sizeof(expected), "role=active term=%llu ",
                 (unsigned long long)session_term(remote_session(standby->core.remote))->mark.term);
  if (is_active != begins(status, "role=active")) {
    broken(standby, "writes a line before its status says so", text);
  } else if (is_active && (!begins(status, expected) || begins(text, "active: term 0,"))) {
    broken(standby, "is active in another term than it has", status);
  } else if ((is_active && (is_well || standby->serves)) || (!is_active && strstr(health.text, text) != NULL)) {
    broken(standby, "writes a line after health or its peers know", text);
  } else if (strcmp(text, standby->line) == 0) {
    broken(standby, "says twice", text);
  }
}

static void note(void *data, const struct cv_note *note) {
  static const char is_standing[] = "standing by: ";
  struct standby *standby = data;
  bool is_active = begins(note->text, "active: term ");
  const char *text = is_active ? note->text : note->text + sizeof(is_standing) - 1;
  world_log(standby->party->world, "broker %u: %s", standby->party->number, note->text);
  if (!is_active && !begins(note->text, is_standing)) {
    broken(standby, "says what nobody has asked", note->text);
    return;
  }
  check_line(standby, text, is_active);
  standby->said_active = standby->said_active || is_active;
  (void)snprintf(standby->line, sizeof(standby->line), "%s", text);
}

static void check_metrics(const struct standby *standby) {
  cv_buf_clear(&metrics);
  cv_standby_metrics(&standby->core, &metrics);
  cv_buf_put_u8(&metrics, 0);
  const char *expected = standby->serves ? "\ncrowdveil_broker_active 1\n" : "\ncrowdveil_broker_active 0\n";
  if (strstr((const char *)metrics.data, expected) == NULL) {
    broken(standby, "has other metrics than", expected);
  }
}

/* Status, health and metrics tell the truth, also while the storage thread works or has just ended. */
static void check_told(const struct standby *standby) {
  char status[600], expected[60];
  struct cv_why health;
  bool is_well = cv_standby_health(&standby->core, &health) == CV_OK;
  (void)snprintf(expected, sizeof(expected), "role=%s term=%llu ", standby->serves ? "active" : "standby",
                 (unsigned long long)standby->term);
  cv_standby_status(&standby->core, status, sizeof(status));
  if (!begins(status, expected)) {
    broken(standby, "has another status", status);
  } else if (is_well && (!begins(health.text, "ok ") || !begins(health.text + 3, expected))) {
    broken(standby, "has another health", health.text);
  } else if (standby->serves && !(is_well && standby->said_active)) {
    broken(standby, "serves without a word", health.text);
  }
  check_metrics(standby);
}

/* The last step of one that stands by: a failure is in the log and in health. */
static void check_step(const struct standby *standby) {
  struct cv_why health;
  enum cv_err err = cv_standby_health(&standby->core, &health);
  char begin[460];
  (void)snprintf(begin, sizeof(begin), "%.400s", standby->why.text);
  if (standby->err != CV_OK && (err == CV_OK || strstr(health.text, begin) == NULL)) {
    broken(standby, "has failed, and its health hides it", standby->why.text);
  } else if (standby->err == CV_OK && err != CV_OK) {
    broken(standby, "stands by, and is not healthy", health.text);
  } else if (standby->err != CV_OK && strcmp(standby->line, standby->why.text) != 0) {
    broken(standby, "has failed without a line", standby->why.text);
  } else if (standby->has_loaded) {
    broken(standby, "stands by with what it has loaded", standby->why.text);
  }
}

/* ---- what it asks of its broker ---- */

static uint64_t work_ms(struct world *world) {
  return world_below(world, world_chance(world, 10) ? SLOW_MS : QUICK_MS);
}

static bool borrow(void *data) {
  struct standby *standby = data;
  if (!cv_turn_take(standby->turn)) {
    return false;
  }
  if (standby->works) {
    broken(standby, "begins before its last step has ended", "");
  }
  standby->works = true;
  standby->has_worked = false;
  party_after(standby->party, work_ms(standby->party->world), STANDBY_WORK);
  return true;
}

static enum cv_err load(void *data, struct cv_broker_store *store, struct cv_why *why) {
  struct standby *standby = data;
  if (standby->has_loaded) {
    broken(standby, "loads, and has not freed what it loaded before", "");
  }
  standby->has_loaded = true;
  CV_TRY(standby->ops->load(standby->party, store, why));
  if (session_is_harmed(remote_session(standby->core.remote))) {
    broken(standby, "loads a row that nobody has stored", "");
  }
  return CV_OK;
}

static void unload(void *data) {
  struct standby *standby = data;
  standby->has_loaded = false;
  standby->ops->unload(standby->party);
}

/* No two brokers serve in one term. */
static void active(void *data) {
  struct standby *standby = data;
  struct world *world = standby->party->world;
  uint64_t term = session_term(remote_session(standby->core.remote))->mark.term;
  CV_REQUIRE(term < TERMS_MAX);
  if (world->is_served == NULL) {
    world->is_served = calloc(TERMS_MAX, sizeof(*world->is_served));
    CV_REQUIRE(world->is_served != NULL);
  }
  if (term == 0 || world->is_served[term]) {
    broken(standby, "serves in a term in which one has served", "");
  }
  world->is_served[term] = true;
  standby->serves = true;
  tally(TALLY_TERMS);
  tally_add(TALLY_ACTIVE_LATE, !standby_is_latest(standby));
  standby->ops->active(standby->party);
}

static void fail(void *data, const char *what, const struct cv_why *why) {
  struct standby *standby = data;
  tally(TALLY_BEATS_FAILED);
  cv_turn_fail(standby->turn, what, why);
}

/* ---- the storage thread ---- */

/* Whatever comes after it, at this moment the broker has the term, and what it has loaded is of the term. */
static void check_loaded(const struct standby *standby) {
  const struct session *session = remote_session(standby->core.remote);
  if (!session_is_latest(session)) {
    broken(standby, "is to serve in a term that is over", "");
  } else if (!session_is_proven(session)) {
    broken(standby, "is to serve what it has not proven", "");
  }
}

static void work(struct standby *standby) {
  struct world *world = standby->party->world;
  bool had_loaded = standby->has_loaded;
  if (!standby->serves && world->now_ms < standby->rests_until_ms) {
    broken(standby, "does not rest", standby->line);
  }
  mix_forget();
  standby->why.text[0] = '\0';
  standby->err = cv_standby_work(&standby->core, &standby->why);
  standby->has_worked = true;
  tally_add(TALLY_KILLED_WORKING, standby->party->dead);
  if (standby->party->dead || had_loaded || !standby->has_loaded) {
    return;
  }
  if (standby->err == CV_OK) {
    check_loaded(standby);
    return;
  }
  tally(TALLY_LOADS_FAILED);
  tally_add(TALLY_LOADS_FAILED_ALONE, world->active == NULL || world->active == standby->party);
  standby->rests_until_ms = world->now_ms + REST_MS;
  world->active = world->active == standby->party ? NULL : world->active;
}

static void worked(struct standby *standby) {
  standby->works = standby->has_worked = false;
  standby->term = session_term(remote_session(standby->core.remote))->mark.term;
  cv_standby_worked(&standby->core, standby->err, &standby->why, party_mono_ms(standby->party));
  if (!standby->serves) {
    tally_add(TALLY_STEPS_FAILED, standby->err != CV_OK);
    check_step(standby);
  }
  check_told(standby);
  cv_turn_give_back(standby->turn);
}

void standby_timer(struct standby *standby, int which) {
  struct party *party = standby->party;
  if (which == STANDBY_WORKED) {
    worked(standby);
  } else if (standby_is_silent(standby)) {
    party_after(party, SILENT_MS, STANDBY_WORK);
  } else {
    if (!standby->has_worked) {
      work(standby);
    }
    party_after(party, work_ms(party->world), STANDBY_WORKED);
  }
}

bool standby_overtakes(struct party *broker) {
  if (!broker->up || broker->dead || broker->exits || broker->stood_ms > broker->world->now_ms) {
    return false;
  }
  struct standby *standby = broker_standby(broker);
  if (standby->serves || standby->has_worked || standby_is_silent(standby)) {
    return false;
  }
  cv_standby_tick(&standby->core, party_mono_ms(broker) + POLL_MS); /* at the latest its next poll is now */
  if (!standby->works || standby->has_worked) {
    return false;
  }
  work(standby);
  return standby->has_loaded && standby->err == CV_OK;
}

/* ---- its life ---- */

enum cv_err standby_open(struct party *party, struct cv_turn *turn, const struct standby_ops *ops, struct standby **ret,
                         struct cv_why *why) {
  struct standby *standby = calloc(1, sizeof(*standby));
  CV_REQUIRE(standby != NULL);
  *standby = (struct standby){.party = party, .turn = turn, .ops = ops, .anchor = broker_anchor(party)};
  *ret = standby;
  standby->core = (struct cv_standby){.ops = remote_of(party),
                                      .config = {.anchor = standby->anchor.path, .name = "broker"},
                                      .borrow = borrow,
                                      .load = load,
                                      .unload = unload,
                                      .active = active,
                                      .note = note,
                                      .fail = fail,
                                      .party = standby};
  return cv_standby_open(&standby->core, why);
}

void standby_tick(struct standby *standby) {
  if (standby->works) {
    check_told(standby);
  }
  cv_standby_tick(&standby->core, party_mono_ms(standby->party));
}

void standby_stored(struct standby *standby) {
  cv_standby_stored(&standby->core, party_mono_ms(standby->party));
  check_told(standby);
}

bool standby_is_latest(const struct standby *standby) {
  return session_is_latest(remote_session(standby->core.remote));
}

bool standby_is_silent(const struct standby *standby) {
  return session_is_silent(remote_session(standby->core.remote));
}

void standby_leave(struct standby *standby) {
  cv_standby_leave(&standby->core);
}

void standby_close(struct standby *standby, bool lingers) {
  if (lingers && standby->core.remote != NULL) {
    remote_linger(standby->core.remote);
  }
  cv_standby_close(&standby->core);
  free(standby);
}

/* ---- whether one serves ---- */

/*
 * How long it may take until a broker serves, after the last fault of each kind, from when on there is one that could.
 * A broker that is killed may leave its lock behind, which stands still for 5 s, as that of a frozen one does. A broker
 * that is asked to stop gives its term back. One whose load has failed could not serve for REST_MS, and one that waits
 * for an answer of a server that was replaced could not either; the other one could.
 */
enum { LEAVES_MS = 2000, STANDS_STILL_MS = 9000 };
static const uint32_t bound_ms[FAULT_COUNT] = {[FAULT_CRASH_BROKER] = STANDS_STILL_MS,
                                               [FAULT_DISK_BROKER] = STANDS_STILL_MS,
                                               [FAULT_STALL] = STANDS_STILL_MS,
                                               [FAULT_MEMORY] = STANDS_STILL_MS,
                                               [FAULT_DRAIN] = LEAVES_MS,
                                               [FAULT_COMMIT] = STANDS_STILL_MS,
                                               [FAULT_CUT_SERVER] = STANDS_STILL_MS,
                                               [FAULT_PROMOTE] = STANDS_STILL_MS,
                                               [FAULT_RESTORE] = STANDS_STILL_MS,
                                               [FAULT_LOAD] = STANDS_STILL_MS,
                                               [FAULT_FREEZE] = STANDS_STILL_MS};

void standby_shaken(struct world *world, enum fault fault) {
  world->shaken_ms = world->now_ms;
  world->shaken_by = fault;
  world->bound_ms = bound_ms[fault] > world->bound_ms ? bound_ms[fault] : world->bound_ms;
}

static bool serves(const struct party *broker) {
  return broker->up && broker->stood_ms <= broker->world->now_ms && broker == broker->world->active &&
         broker_standby(broker)->serves;
}

/* Nothing keeps the broker from taking the term but another one that has it. */
static bool could(const struct party *broker) {
  const struct world *world = broker->world;
  const struct disk *disk = broker->disk;
  bool is_there = broker->up && !broker->dead && !broker->exits && broker->stood_ms <= world->now_ms;
  bool is_whole = disk->fuse == 0 && disk->refuse_in == 0 && broker->starves == 0;
  return is_there && is_whole && broker_standby(broker)->rests_until_ms <= world->now_ms &&
         !standby_is_silent(broker_standby(broker)) && truth_anchor_of(broker) > 0;
}

static void watch(struct world *world, struct event *event) {
  bool is_served = serves(world->broker) || serves(world->second);
  bool one_could = !server_is_disturbed(world->server) && (could(world->broker) || could(world->second));
  if (is_served) {
    world->bound_ms = bound_ms[world->shaken_by];
  }
  if (is_served || !one_could || world->shaken_ms > world->unserved_ms) {
    world->unserved_ms = world->now_ms;
  }
  uint64_t took_ms = world->now_ms - world->unserved_ms;
  if (took_ms > world->bound_ms && !world->finished) {
    world_fail(world, "S: no broker has served for %llu ms, and one could", (unsigned long long)took_ms);
  }
  world_at(world, WATCH_MS, watch, NULL, NULL, 0);
}

void standby_watch(struct world *world) {
  standby_shaken(world, FAULT_CRASH_BROKER); /* at the start both are new */
  world_at(world, WATCH_MS, watch, NULL, NULL, 0);
}
