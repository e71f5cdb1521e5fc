/* SPDX-License-Identifier: Apache-2.0 */
/* The third-party: its core, store and turn as in thirdparty/shell.c, with a simulated network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/daemon/turn.h"
#include "tests/sim/net.h"
#include "tests/sim/tally.h"
#include "tests/sim/thirdparty.h"
#include "thirdparty/core.h"
#include "thirdparty/replay.h"
#include "thirdparty/store.h"

enum { TIMER_TURN, TIMER_COMMIT };

struct self {
  struct cv_thirdparty *thirdparty;
  struct cv_thirdparty_store *store;
  struct cv_thirdparty_batch batch;
  struct cv_turn turn;
  struct cv_rng_seeded rng;
  bool turning;
};

struct wire {
  struct end *end;
  struct cv_thirdparty_conn *conn;
};

static void note(void *data, const struct cv_note *note) {
  world_log(data, "thirdparty: %s%s%s", note->peer != NULL ? note->peer : "", note->peer != NULL ? ": " : "",
            note->text);
}

/* ---- out ---- */

/* S: the broker whose link another connection takes over has dialled again, or its term is over. */
static void check_taken_over(const struct end *end) {
  struct world *world = end->party->world;
  const struct party *broker = end->other->party;
  bool has_dialled = world->server == NULL || broker != world->active;
  for (const struct cable *cable = world->cables; cable != end->cable && !has_dialled; cable = cable->next) {
    has_dialled = cable->end[0].party == broker && cable->end[1].party == end->party;
  }
  if (!has_dialled) {
    world_fail(world, "S: a broker whose term is over takes the third-party from broker %u", broker->number);
  }
}

static void forget(struct world *world, struct event *event) {
  struct wire *wire = event->about;
  struct self *self = event->party->self;
  if (wire->conn != NULL) {
    cv_thirdparty_leave(self->thirdparty, wire->conn);
    wire->conn = NULL;
  }
}

static void deliver(struct party *party) {
  struct self *self = party->self;
  struct world *world = party->world;
  struct cv_thirdparty_out out;
  while (party_step(party) && cv_thirdparty_next_out(self->thirdparty, &out)) {
    struct wire *wire = out.data;
    if (!wire->end->open) {
      continue;
    }
    truth_thirdparty_told(world->truth, out.frame);
    net_send_frame(wire->end, &CV_RANK_WIRE, out.frame);
    if (out.close != NULL) {
      bool is_late = world->server != NULL && strstr(out.close, "a broker of term") != NULL;
      if (strstr(out.close, "a newer connection") != NULL) {
        check_taken_over(wire->end);
      }
      tally_add(TALLY_LATE_DIALS, is_late);
      if (strstr(out.close, "a newer connection") == NULL && !world->rolled_back && !is_late) {
        world_fail(world, "the third-party closes on the broker: %s", out.close);
      }
      net_close(wire->end);
      world_at(world, 0, forget, party, wire, 0);
    }
  }
}

/* ---- the turn ---- */

static bool is_pending(void *data) {
  struct party *party = data;
  const struct self *self = party->self;
  return cv_thirdparty_is_pending(self->thirdparty) && party_step(party);
}

static size_t gathered(void *data) {
  const struct party *party = data;
  const struct self *self = party->self;
  return cv_thirdparty_gathered(self->thirdparty);
}

static enum cv_err flush(void *data, bool *ret_store) {
  struct party *party = data;
  struct self *self = party->self;
  party_enter(party);
  enum cv_err err = cv_thirdparty_flush(self->thirdparty, &self->batch);
  party_leave(party);
  if (party->exits) {
    return CV_ERR_NOMEM;
  }
  CV_REQUIRE(err == CV_OK);
  *ret_store = self->batch.first != NULL;
  return CV_OK;
}

static void note_stored(struct world *world, const struct cv_thirdparty_batch *batch) {
  tally(TALLY_COMMITS_THIRDPARTY);
  for (const struct cv_delta *delta = batch->first; delta != NULL; delta = delta->next) {
    world_log(world, "thirdparty: stored campaign %llu: %llu releases, plan %llu, %s",
              (unsigned long long)delta->key.campaign, (unsigned long long)delta->row.releases,
              (unsigned long long)delta->row.plan, cv_end_text(delta->row.end));
    truth_thirdparty_stored(world->truth, delta->key.campaign, delta->row.releases, delta->row.accepted);
  }
}

/* The third-party may die before or after the commit; either counts as a failure. */
static enum cv_err commit(void *data, struct cv_why *why) {
  struct party *party = data;
  struct self *self = party->self;
  if (!party_step(party)) {
    return cv_fail(why, CV_ERR_IO, "it dies");
  }
  CV_TRY(cv_thirdparty_store_commit(self->store, &self->batch, why));
  note_stored(party->world, &self->batch);
  return party_step(party) ? CV_OK : cv_fail(why, CV_ERR_IO, "it dies");
}

static enum cv_err commit_here(void *data, struct cv_why *why) {
  tally(TALLY_COMMITS_HERE);
  return commit(data, why);
}

static void hand_over(void *data) {
  struct party *party = data;
  party_after(party, world_below(party->world, 6), TIMER_COMMIT);
}

static bool is_quick(void *data) {
  const struct party *party = data;
  return world_chance(party->world, 60);
}

static void say(void *data) {
  struct party *party = data;
  struct self *self = party->self;
  cv_thirdparty_batch_fini(&self->batch);
  cv_thirdparty_stored(self->thirdparty);
  deliver(party);
}

static void on_failure(void *data, const char *what, const struct cv_why *why) {
  struct party *party = data;
  world_log(party->world, "thirdparty: %s: %s", what, why->text);
  party->exits = party->exits || !party->dead;
}

static const struct cv_turn_ops turn_ops = {.is_pending = is_pending,
                                            .gathered = gathered,
                                            .flush = flush,
                                            .commit = commit_here,
                                            .hand_over = hand_over,
                                            .is_quick = is_quick,
                                            .say = say,
                                            .fail = on_failure};

static void turn_soon(struct party *party) {
  struct self *self = party->self;
  if (!self->turning && !cv_turn_is_busy(&self->turn)) {
    self->turning = true;
    party_after(party, world_below(party->world, 3), TIMER_TURN);
  }
}

static void timer(struct party *party, int which) {
  struct self *self = party->self;
  if (which == TIMER_TURN) {
    self->turning = false;
    cv_turn_over(&self->turn);
    return;
  }
  struct cv_why why;
  enum cv_err err = commit(party, &why);
  cv_turn_committed(&self->turn, err, &why);
}

/* ---- in ---- */

static void opened(struct party *party, struct end *end) {
  struct self *self = party->self;
  struct wire *wire = calloc(1, sizeof(*wire));
  CV_REQUIRE(wire != NULL);
  wire->end = end;
  end->data = wire;
  CV_REQUIRE(cv_thirdparty_join(self->thirdparty, end->other->party->identity.name, wire, &wire->conn) == CV_OK);
  turn_soon(party);
}

static void frame(struct party *party, struct end *end, const uint8_t *bytes, size_t n) {
  struct self *self = party->self;
  struct world *world = party->world;
  struct wire *wire = end->data;
  struct cv_rank_frame frame;
  if (wire->conn == NULL || !party_step(party)) {
    return;
  }
  CV_REQUIRE(cv_rank_decode(bytes, n, &world->decoding, &frame) == CV_OK);
  party_enter(party);
  enum cv_err err = cv_thirdparty_on_rank(self->thirdparty, wire->conn, &frame);
  party_leave(party);
  if (party->exits) {
    return;
  }
  CV_REQUIRE(err == CV_OK);
  if (cv_thirdparty_gathered(self->thirdparty) > 4096) {
    world_fail(world, "the third-party holds %zu releases that are not stored",
               cv_thirdparty_gathered(self->thirdparty));
  }
  turn_soon(party);
}

static void closed(struct party *party, struct end *end) {
  struct event event = {.party = party, .about = end->data};
  forget(party->world, &event);
  turn_soon(party);
}

/* ---- start and end ---- */

static enum cv_err restore(void *data, const struct cv_stored_campaign *stored, struct cv_why *why) {
  struct party *party = data;
  const struct self *self = party->self;
  truth_thirdparty_stored(party->world->truth, stored->key.campaign, stored->row.releases, stored->row.accepted);
  return cv_thirdparty_restore(self->thirdparty, stored, why);
}

static bool start(struct party *party, struct cv_why *why) {
  struct self *self = calloc(1, sizeof(*self));
  CV_REQUIRE(self != NULL);
  party->self = self;
  self->turn = (struct cv_turn){.ops = &turn_ops, .data = party, .crowd = party->world->scenario.batch_crowd};
  cv_rng_seeded_init(&self->rng, party->world->scenario.seed, 77, 4, party->life);
  struct cv_thirdparty_limits limits = CV_THIRDPARTY_DEFAULTS;
  limits.campaigns =
      party->world->scenario.thirdparty_campaigns > 0 ? party->world->scenario.thirdparty_campaigns : limits.campaigns;
  const struct cv_thirdparty_config setup = {.digest = cv_sha256,
                                             .rng = &self->rng.rng,
                                             .program = "sim",
                                             .note = note,
                                             .data = party->world,
                                             .limits = limits};
  CV_REQUIRE(cv_thirdparty_new(&setup, &self->thirdparty) == CV_OK);
  if (cv_thirdparty_store_open("T/thirdparty.db", CV_SIM_VFS, &self->store, why) != CV_OK ||
      cv_thirdparty_store_load(self->store, restore, party, why) != CV_OK) {
    return false;
  }
  turn_soon(party);
  return true;
}

static void stop(struct party *party) {
  struct self *self = party->self;
  cv_thirdparty_free(self->thirdparty);
  cv_thirdparty_store_close(self->store);
  cv_thirdparty_batch_fini(&self->batch);
  for (struct cable *cable = party->world->cables; cable != NULL; cable = cable->next) {
    for (int i = 0; i < 2; i++) {
      if (cable->end[i].party == party) {
        free(cable->end[i].data);
        cable->end[i].data = NULL;
      }
    }
  }
  free(self);
}

const struct party_ops party_thirdparty = {
    .start = start, .stop = stop, .opened = opened, .frame = frame, .closed = closed, .timer = timer};

/* ---- replay ---- */

static void judge(void *data, const struct cv_stored_campaign *campaign, const struct cv_replay_verdict *verdict) {
  if (!verdict->agrees) {
    world_fail(data, "campaign %llu does not replay: %s", (unsigned long long)campaign->key.campaign,
               verdict->first.text);
  }
}

void thirdparty_replay(struct party *party, const char *path) {
  struct world *world = party->world;
  struct cv_why why = {.text = ""};
  if (party->up) { /* closing merges the log into the database */
    struct self *self = party->self;
    cv_thirdparty_store_close(self->store);
    self->store = NULL;
  }
  const struct disk_file *file = disk_find(party->disk, "T/thirdparty.db");
  FILE *out = file == NULL ? NULL : fopen(path, "wb");
  if (out == NULL) {
    world_fail(world, "no database of the third-party");
    return;
  }
  static const uint8_t not_wal[2] = {1, 1}; /* file format: without a write-ahead log */
  bool ok = fwrite(file->now, 1, 18, out) == 18 && fwrite(not_wal, 1, 2, out) == 2 &&
            fwrite(file->now + 20, 1, file->now_n - 20, out) == file->now_n - 20;
  CV_REQUIRE(fclose(out) == 0 && ok);
  if (cv_replay_database(path, judge, NULL, world, &why) != CV_OK) {
    world_fail(world, "the third-party's database cannot be replayed: %s", why.text);
  }
  (void)remove(path);
}
