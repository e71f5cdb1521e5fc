/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/both/meta.h"
#include "broker/store.h"
#include "tests/sim/server_state.h"
#include "tests/sim/standby.h"
#include "tests/sim/tally.h"

enum { STILL_MS = 5000, ANSWER_MS = 5000, DOUBT_MS = 3000 };

/* ---- the server ---- */

struct server *server_new(struct world *world) {
  struct server *server = calloc(1, sizeof(*server));
  CV_REQUIRE(server != NULL);
  server->world = world;
  server->now.is_new = true;
  return server;
}

static void forget_lacking(struct server *server) {
  if (server->has_lacking) {
    database_fini(&server->lacking);
    server->has_lacking = false;
  }
}

void server_free(struct server *server) {
  if (server == NULL) {
    return;
  }
  forget_lacking(server);
  changes_clear(&server->doubt.changes);
  database_fini(&server->now);
  database_fini(&server->copy);
  database_fini(&server->real);
  free(server);
}

/* Everybody sees it from now on. */
static void apply(struct server *server, const struct transaction *transaction) {
  if (!database_apply(&server->now, &transaction->changes)) {
    world_fail(server->world, "2: a row is stored a second time, which is only written once");
  }
  database_mark(&server->now, &transaction->mark);
  if (transaction->has_term) {
    CV_REQUIRE(cv_lineage_add(&server->now.lineage, &transaction->term) == CV_OK);
    server->term_party = transaction->party;
  }
}

static void release(struct server *server, uint64_t session) {
  if (server->holder == session && !server->is_in_doubt) {
    server->holder = 0;
  }
}

/* The replica is back, or the server has started again: the commit is stored. */
static void end_doubt(struct server *server, bool is_stored) {
  if (!server->is_in_doubt) {
    return;
  }
  world_log(server->world, "server: the commit in doubt is %s", is_stored ? "stored" : "gone");
  if (is_stored) {
    apply(server, &server->doubt);
    forget_lacking(server);
  }
  changes_clear(&server->doubt.changes);
  server->is_in_doubt = false;
  server->holder = 0;
}

static void resolve(struct world *world, struct event *event) {
  end_doubt(event->about, true);
}

/* ---- commits ---- */

static bool is_gone(const struct session *session) {
  const struct server *server = session->server;
  bool is_cut = session->number == server->cut[0] || session->number == server->cut[1];
  return session->is_lost || session->generation != server->generation || is_cut;
}

bool session_is_silent(const struct session *session) {
  const struct server *server = session->server;
  return session->generation != server->generation && server->world->now_ms < server->replaced_ms + ANSWER_MS;
}

static enum cv_err lose(struct session *session, const char *text, struct cv_why *why) {
  session->is_lost = true;
  release(session->server, session->number);
  return cv_fail(why, CV_ERR_IO, "the server: %s", text);
}

/* A statement arrives: the broker has not died before it was sent, and is connected. */
static enum cv_err reach(struct session *session, struct cv_why *why) {
  struct server *server = session->server;
  if (!party_step(session->party)) {
    return cv_fail(why, CV_ERR_IO, "it dies");
  }
  if (is_gone(session)) {
    return lose(session, "the connection is lost", why);
  }
  server->holder_active_ms = server->holder == session->number ? server->world->now_ms : server->holder_active_ms;
  return CV_OK;
}

/* The first statement of a transaction. */
static bool passes_fence(const struct session *session) {
  const struct database *now = &session->server->now;
  return now->mark.term == session->term.mark.term && now->mark.commit == session->term.mark.commit &&
         now->disputed[0] == '\0';
}

static enum cv_err meet_fate(struct session *session, enum fate fate, struct cv_why *why) {
  struct server *server = session->server;
  struct transaction *transaction = &session->transaction;
  tally((enum tally)(TALLY_STORED + fate));
  switch (fate) {
    case FATE_ABORTED:
      return lose(session, "the session ends before COMMIT", why);
    case FATE_WAITING:
      server->is_in_doubt = true;
      server->doubt = *transaction;
      *transaction = (struct transaction){.is_open = false};
      world_at(server->world, 1 + world_below(server->world, DOUBT_MS), resolve, NULL, server, 0);
      return lose(session, "no answer to COMMIT", why);
    case FATE_CANCELED:
      if (!server->has_lacking) {
        database_copy(&server->now, &server->lacking);
        server->has_lacking = true;
      }
      apply(server, transaction);
      session->is_lost = true; /* to its broker; it has the lock until the broker's process ends */
      return cv_fail(why, CV_ERR_STATE, "the server: COMMIT does not wait for the replica");
    case FATE_UNKNOWN:
      apply(server, transaction);
      return lose(session, "no answer to COMMIT", why);
    case FATE_STORED:
    default:
      apply(server, transaction);
      forget_lacking(server);
      return CV_OK;
  }
}

static enum cv_err store(struct session *session, struct cv_why *why) {
  struct server *server = session->server;
  CV_TRY(reach(session, why));
  if (!passes_fence(session)) {
    tally(TALLY_FENCED);
    return lose(session, "the term is over", why);
  }
  enum fate fate = server->next;
  server->next = FATE_STORED;
  CV_TRY(meet_fate(session, fate, why));
  session->is_loading = false;
  return party_step(session->party) ? CV_OK : cv_fail(why, CV_ERR_IO, "it dies");
}

enum cv_err session_begin(void *data, const struct cv_anchor_mark *mark, struct cv_why *why) {
  struct session *session = data;
  CV_REQUIRE(!session->transaction.is_open);
  session->transaction = (struct transaction){.is_open = true, .mark = *mark};
  return CV_OK;
}

void session_rollback(void *data) {
  struct session *session = data;
  changes_clear(&session->transaction.changes);
  session->transaction.is_open = false;
}

enum cv_err session_commit(void *data, struct cv_why *why) {
  struct session *session = data;
  const struct cv_anchor_mark mark = session->transaction.mark, before = session->term.mark;
  CV_TRY(store(session, why));
  session->term.prior = mark.commit != before.commit ? before.hash : session->term.prior;
  session->term.mark = mark;
  session_rollback(session);
  return CV_OK;
}

void session_change(struct session *session, struct change change) {
  change.commit = session->transaction.mark.commit;
  change.term = session->transaction.mark.term;
  changes_add(&session->transaction.changes, &change);
}

static enum cv_err write(void *data, const struct cv_op *op, const uint8_t *bytes, size_t n, struct cv_why *why) {
  session_change(data, (struct change){.kind = op->kind,
                                       .campaign = op->campaign,
                                       .chunk = op->chunk,
                                       .number = op->number,
                                       .bytes = (uint8_t *)(uintptr_t)bytes,
                                       .n = n});
  return CV_OK;
}

static enum cv_err purge(void *data, uint32_t campaign, struct cv_why *why) {
  session_change(data, (struct change){.kind = CV_OP_PURGE, .campaign = campaign});
  return CV_OK;
}

static enum cv_err drop(void *data, uint32_t campaign, uint64_t number, struct cv_why *why) {
  session_change(data, (struct change){.kind = CV_OP_DROP, .campaign = campaign, .number = number});
  return CV_OK;
}

/* ---- reading ---- */

static void set_term(void *owner, uint64_t number) {
  struct session *session = owner;
  const struct cv_lineage_term *term = cv_lineage_find(&session->term.lineage, number);
  if (term == NULL) {
    world_fail(session->server->world, "2: a row of term %llu, which is unknown", (unsigned long long)number);
    return;
  }
  cv_vault_set_term(session->term.vault, term->id);
}

/* Whoever takes a row that is damaged on its way. The backend checks the code of a plain row, the store opens a sealed
 * one. */
struct damage {
  struct session *session;
  cv_backend_row_fn *take;
  void *taker;
  bool is_sealed;
};

static enum cv_err take_damaged(void *data, const struct cv_backend_row *row, struct cv_why *why) {
  const struct damage *damage = data;
  struct session *session = damage->session;
  struct cv_backend_row other = *row;
  if (session->is_harmed || row->n == 0) {
    return damage->take(damage->taker, row, why);
  }
  session->is_harmed = true;
  session->server->harm = HARM_NONE;
  tally(TALLY_LOADS_DAMAGED);
  if (!damage->is_sealed) {
    return cv_fail(why, CV_ERR_DAMAGED, "the server: a row of campaign %u has another code", row->campaign);
  }
  uint8_t *bytes = malloc(row->n);
  CV_REQUIRE(bytes != NULL);
  memcpy(bytes, row->bytes, row->n);
  bytes[world_below(session->server->world, row->n)] ^= (uint8_t)(1U << world_below(session->server->world, 8));
  other.bytes = bytes;
  enum cv_err err = damage->take(damage->taker, &other, why);
  free(bytes);
  return err;
}

/* The harm of this read; one that finds nothing to harm waits for the next. */
static enum harm harm_of(struct session *session) {
  struct server *server = session->server;
  bool is_now = session->is_loading && server->harm != HARM_NONE && (server->harm_in == 0 || --server->harm_in == 0);
  enum harm harm = is_now ? server->harm : HARM_NONE;
  if (harm == HARM_LOST) {
    server->harm = HARM_NONE;
    tally(TALLY_LOADS_LOST);
  } else if (harm == HARM_OVERTAKEN) {
    struct world *world = server->world;
    server->harm = HARM_NONE;
    uint64_t holder = server->holder;
    server->holder = 0;
    bool is_done = standby_overtakes(session->party == world->broker ? world->second : world->broker);
    tally_add(TALLY_LOADS_OVERTAKEN, is_done);
    server->holder = is_done ? server->holder : holder;
    server->harm = is_done || server->harm != HARM_NONE ? server->harm : HARM_OVERTAKEN;
  }
  return harm;
}

static enum cv_err each(void *data, enum cv_backend_query query, uint32_t campaign, cv_backend_row_fn *take,
                        void *taker, struct cv_why *why) {
  struct session *session = data;
  struct damage damage = {.session = session, .take = take, .taker = taker, .is_sealed = query >= CV_BACKEND_CHUNK};
  CV_TRY(reach(session, why));
  enum harm harm = harm_of(session);
  bool is_damaged = harm == HARM_DAMAGED;
  enum cv_err err = harm == HARM_LOST
                        ? lose(session, "the connection is lost", why)
                        : database_each(&session->server->now, query, campaign, set_term, session,
                                        is_damaged ? take_damaged : take, is_damaged ? (void *)&damage : taker, why);
  cv_vault_set_term(session->term.vault, session->term.mark.term_id);
  return err;
}

static enum cv_err next_open(void *data, uint32_t after, uint32_t *ret, struct cv_why *why) {
  const struct session *session = data;
  *ret = database_next_open(&session->server->now, after);
  return CV_OK;
}

static enum cv_err check(void *data, uint32_t campaign, struct cv_why *why) {
  return CV_OK;
}

static void close_backend(void *data) {
}

const char *server_name(void *data) {
  return "the server";
}

/* ---- the term ---- */

static enum cv_err read_all(void *data, struct cv_why *why) {
  struct session *session = data;
  struct cv_term *term = &session->term;
  const struct database *now = &session->server->now;
  CV_TRY(reach(session, why));
  for (size_t i = term->lineage.n; i < now->lineage.n; i++) {
    CV_REQUIRE(cv_lineage_add(&term->lineage, &now->lineage.item[i]) == CV_OK);
  }
  term->mark = now->mark;
  term->prior = now->prior;
  term->is_new = now->is_new;
  (void)snprintf(term->disputed, sizeof(term->disputed), "%s", now->disputed);
  return CV_OK;
}

static enum cv_err open_vault(void *data, struct cv_why *why) {
  struct session *session = data;
  struct cv_term *term = &session->term;
  cv_vault_free(term->vault);
  CV_REQUIRE(cv_vault_new(&session->server->world->ring, &term->vault) == CV_OK);
  return cv_vault_open(term->vault, (struct cv_vault_rows){.ops = &SERVER_KEYS, .data = session}, term->mark.database,
                       why);
}

/* A broker that goes on lets its session never stand still for so long. */
static void check_still(const struct server *server) {
  const struct party *party = server->holder_party;
  if (party->up && !party->dead && party->life == server->holder_life && party->stood_ms <= server->holder_active_ms) {
    world_fail(server->world, "S: broker %u goes on, and its session stands still for %llu ms", party->number,
               (unsigned long long)(server->world->now_ms - server->holder_active_ms));
  }
}

/* Ends the lock of a holder that has stood still. Its session stays: a real server ends it, too; here only the fence
 * keeps it from committing. */
static enum cv_err see_holder(void *data, bool *ret_is_held, struct cv_why *why) {
  struct session *session = data;
  struct server *server = session->server;
  uint64_t now_ms = server->world->now_ms;
  CV_TRY(reach(session, why));
  bool is_same = server->holder == session->seen && server->holder_active_ms == session->seen_active_ms;
  if (!is_same || server->holder == 0 || server->is_in_doubt) {
    session->seen = server->holder;
    session->seen_active_ms = server->holder_active_ms;
    session->still_since_ms = now_ms;
  } else if (now_ms - session->still_since_ms >= STILL_MS) {
    world_log(server->world, "server: the session of the holder is ended");
    tally(TALLY_TERMINATED);
    check_still(server);
    server->holder = 0;
  }
  *ret_is_held = server->holder != 0;
  return CV_OK;
}

static enum cv_err try_lock(void *data, bool *ret_is_ours, struct cv_why *why) {
  struct session *session = data;
  struct server *server = session->server;
  CV_TRY(reach(session, why));
  *ret_is_ours = server->holder == 0 && !server->is_in_doubt; /* in doubt, the fence's row is locked, too */
  if (*ret_is_ours) {
    server->holder = session->number;
    server->holder_active_ms = server->world->now_ms;
    server->holder_party = session->party;
    server->holder_life = session->party->life;
  }
  return CV_OK;
}

static enum cv_err dispute(void *data, const char *text, struct cv_why *why) {
  struct session *session = data;
  struct database *now = &session->server->now;
  if (now->disputed[0] == '\0') {
    (void)snprintf(now->disputed, sizeof(now->disputed), "%s", text);
  }
  if (!session->server->is_restored) {
    world_fail(session->server->world, "2: the history is disputed: %s", text);
  }
  return CV_OK;
}

static enum cv_err make(void *data, struct cv_why *why) {
  struct session *session = data;
  struct cv_term *term = &session->term;
  struct database *now = &session->server->now;
  CV_TRY(cv_meta_new("broker", &term->mark, why));
  CV_TRY(open_vault(session, why));
  CV_TRY(session_begin(session, &term->mark, why));
  CV_TRY(cv_vault_begin(term->vault, why));
  apply(session->server, &session->transaction);
  now->prior = term->prior = term->mark.hash;
  now->is_new = term->is_new = false;
  session_rollback(session);
  return CV_OK;
}

static enum cv_err draw(void *data, uint8_t ret_id[CV_TERM_ID_BYTES], struct cv_why *why) {
  struct session *session = data;
  struct server *server = session->server;
  const uint64_t bits[] = {cv_mix64(server->world->scenario.seed), cv_mix64(++server->terms)};
  _Static_assert(sizeof(bits) == CV_TERM_ID_BYTES, "an id");
  memcpy(ret_id, bits, sizeof(bits));
  return CV_OK;
}

static enum cv_err touch(void *data, struct cv_why *why) {
  CV_TRY(server_begin_keys(data, why));
  return session_commit(data, why);
}

static enum cv_err begin_term(void *data, const uint8_t id[CV_TERM_ID_BYTES], struct cv_why *why) {
  struct session *session = data;
  struct cv_anchor_mark mark = session->term.mark;
  struct cv_lineage_term item = {.number = mark.term + 1, .commit_before = mark.commit, .hash_before = mark.hash};
  memcpy(item.id, id, sizeof(item.id));
  mark.term = item.number;
  memcpy(mark.term_id, id, sizeof(mark.term_id));
  CV_TRY(session_begin(session, &mark, why));
  session->transaction.has_term = true;
  session->transaction.term = item;
  session->transaction.party = session->party;
  CV_TRY(session_commit(session, why));
  CV_REQUIRE(cv_lineage_add(&session->term.lineage, &item) == CV_OK);
  if (session->server->is_restored) {
    world_fail(session->server->world, "2: a term begins on a database that lacks what was acknowledged");
  }
  return CV_OK;
}

/* ---- sessions ---- */

static const struct cv_term_ops term_ops = {.read = read_all,
                                            .open_vault = open_vault,
                                            .see_holder = see_holder,
                                            .try_lock = try_lock,
                                            .dispute = dispute,
                                            .make = make,
                                            .draw = draw,
                                            .touch = touch,
                                            .begin = begin_term,
                                            .where = server_name};

static void connect(struct session *session) {
  session->number = ++session->server->sessions;
  session->generation = session->server->generation;
  session->is_lost = false;
  session->seen = 0;
  cv_lineage_fini(&session->term.lineage);
}

enum cv_err session_open(struct party *party, const char *anchor, struct session **ret, struct cv_why *why) {
  struct session *session = calloc(1, sizeof(*session));
  CV_REQUIRE(session != NULL);
  session->server = party->world->server;
  session->party = party;
  session->term = (struct cv_term){.ops = &term_ops, .data = session};
  *ret = session;
  connect(session);
  return cv_anchor_open(anchor, &session->term.anchor, &session->term.has_anchor, &session->term.anchored, why);
}

void session_leave(struct session *session) {
  session_rollback(session);
  if (!session->party->dead) { /* who is killed says nothing */
    release(session->server, session->number);
  }
  session->is_lost = true;
  session->is_loading = false;
}

void session_close(struct session *session, bool lingers) {
  if (!lingers) {
    release(session->server, session->number);
  }
  changes_clear(&session->transaction.changes);
  cv_term_fini(&session->term);
  free(session);
}

const struct cv_term *session_term(const struct session *session) {
  return &session->term;
}

void session_tell_holder(const struct session *session, char *to, size_t size) {
  const struct party *party = session->server->term_party;
  to[0] = '\0';
  if (party != NULL) {
    (void)snprintf(to, size, "broker %u", party->number);
  }
}

bool session_is_latest(const struct session *session) {
  return session->server->now.mark.term == session->term.mark.term;
}

bool session_is_proven(const struct session *session) {
  return !session->is_loading;
}

bool session_is_harmed(const struct session *session) {
  return session->is_harmed;
}

enum cv_err session_step(struct session *session, bool *ret_taken, struct cv_why *why) {
  bool is_ours = false;
  *ret_taken = false;
  if (is_gone(session)) {
    connect(session);
  }
  enum cv_err err = cv_term_stand_by(&session->term, &is_ours, why);
  err = err == CV_OK && is_ours ? cv_term_take(&session->term, why) : err;
  if (err != CV_OK) {
    session_leave(session);
    return err;
  }
  *ret_taken = session->is_loading = is_ours;
  session->is_harmed = false;
  return CV_OK;
}

enum cv_err session_store(struct session *session, struct cv_broker_store **ret, struct cv_why *why) {
  static const struct cv_backend_ops ops = {.begin = session_begin,
                                            .write = write,
                                            .purge = purge,
                                            .drop = drop,
                                            .commit = session_commit,
                                            .rollback = session_rollback,
                                            .each = each,
                                            .next_open = next_open,
                                            .check = check,
                                            .close = close_backend};
  const struct cv_backend backend = {.ops = &ops, .data = session};
  const struct cv_term *term = &session->term;
  return cv_broker_store_over(&backend, &term->mark, term->vault, term->anchor, ret, why);
}

enum cv_err session_beat(struct session *session, struct cv_why *why) {
  enum cv_err err = touch(session, why);
  if (err != CV_OK) {
    session_rollback(session);
  }
  return err;
}

/* ---- faults ---- */

void server_next(struct server *server, enum fate fate) {
  server->next = fate;
}

void server_harm(struct server *server, enum harm harm, uint32_t n) {
  server->harm = harm;
  server->harm_in = n;
}

bool server_is_disturbed(const struct server *server) {
  return server->is_restored || server->is_in_doubt;
}

void server_cut(struct server *server) {
  if (server->holder != 0) {
    server->cut[server->holder_party == server->world->second] = server->holder;
    release(server, server->holder);
  }
}

/* Another server in the place of this one, to which nobody is connected yet. */
static void replace(struct server *server) {
  end_doubt(server, world_chance(server->world, 50));
  server->generation++;
  server->replaced_ms = server->world->now_ms;
  server->holder = 0;
}

void server_promote(struct server *server) {
  if (server->is_restored) {
    return;
  }
  replace(server);
  tally_add(TALLY_PROMOTED_LACKING, server->has_lacking);
  if (server->has_lacking) {
    database_fini(&server->now);
    server->now = server->lacking;
    server->lacking = (struct database){.rows = NULL};
    server->has_lacking = false;
  }
}

void server_copy(struct server *server) {
  if (!server->has_copy && !server->now.is_new) {
    database_copy(&server->now, &server->copy);
    server->has_copy = true;
  }
}

/* A history that the copy's numbers do not contradict: more terms, and more commits. */
static void fork_copy(struct server *server) {
  struct database *copy = &server->copy;
  struct cv_lineage_term item = {
      .number = server->now.mark.term + 1, .commit_before = copy->mark.commit, .hash_before = copy->mark.hash};
  memset(item.id, 0xf0, sizeof(item.id));
  CV_REQUIRE(cv_lineage_add(&copy->lineage, &item) == CV_OK);
  copy->mark.term = item.number;
  memcpy(copy->mark.term_id, item.id, sizeof(item.id));
  copy->mark.commit = server->now.mark.commit + 1000;
  copy->mark.hash.bytes[0] ^= 1;
}

bool server_restore(struct server *server, uint64_t anchored) {
  bool is_ready = server->has_copy && !server->is_restored && !server->is_in_doubt && !server->has_lacking &&
                  anchored > server->copy.mark.commit;
  if (!is_ready) {
    return false;
  }
  replace(server);
  bool is_fork = world_chance(server->world, 50);
  if (is_fork) {
    fork_copy(server);
  }
  tally(is_fork ? TALLY_FORKS : TALLY_RESTORED);
  server->real = server->now;
  server->now = server->copy;
  server->copy = (struct database){.rows = NULL};
  server->has_copy = false;
  server->is_restored = true;
  return true;
}

void server_put_back(struct server *server) {
  if (server->is_restored) {
    replace(server);
    database_fini(&server->now);
    server->now = server->real;
    server->real = (struct database){.rows = NULL};
    server->is_restored = false;
  }
}

void server_calm(struct server *server) {
  server->next = FATE_STORED;
  server_put_back(server);
}

void server_bytes(const struct server *server, void (*take)(void *taker, const uint8_t *bytes, size_t n), void *taker) {
  database_bytes(&server->now, take, taker);
}
