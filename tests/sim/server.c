/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/both/meta.h"
#include "broker/store.h"
#include "tests/sim/tally.h"

enum { STILL_MS = 5000, ANSWER_MS = 5000, DOUBT_MS = 3000 };

/* A transaction: rows, the new mark, and perhaps a new term. */
struct transaction {
  bool is_open, has_term;
  struct changes changes;
  struct cv_anchor_mark mark;
  struct cv_lineage_term term;
};

struct server {
  struct world *world;
  struct database now;
  bool has_lacking;
  struct database lacking; /* what the replica has, if it lacks commits */
  /* Who has the lock: the session's number, 0 = nobody; when its state has changed last; whether it is in doubt. */
  uint64_t holder, holder_active_ms;
  bool is_in_doubt;
  struct transaction doubt;
  uint64_t cut; /* the session whose connection was cut last */
  uint64_t generation, replaced_ms;
  uint64_t sessions, terms;
  enum fate next;
  bool has_copy, is_restored;
  struct database copy, real;
};

struct session {
  struct server *server;
  uint64_t number, generation;
  bool is_lost;
  struct cv_term term;
  struct transaction transaction;
  /* The holder as it was seen last, and since when it has stood still. */
  uint64_t seen, seen_active_ms, still_since_ms;
};

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
  return session->is_lost || session->generation != server->generation || session->number == server->cut;
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
  if (is_gone(session)) {
    return lose(session, "the connection is lost", why);
  }
  if (!passes_fence(session)) {
    tally(TALLY_FENCED);
    return lose(session, "the term is over", why);
  }
  enum fate fate = server->next;
  server->next = FATE_STORED;
  CV_TRY(meet_fate(session, fate, why));
  server->holder_active_ms = server->holder == session->number ? server->world->now_ms : server->holder_active_ms;
  return CV_OK;
}

static enum cv_err begin(void *data, const struct cv_anchor_mark *mark, struct cv_why *why) {
  struct session *session = data;
  CV_REQUIRE(!session->transaction.is_open);
  session->transaction = (struct transaction){.is_open = true, .mark = *mark};
  return CV_OK;
}

static void rollback(void *data) {
  struct session *session = data;
  changes_clear(&session->transaction.changes);
  session->transaction.is_open = false;
}

static enum cv_err commit(void *data, struct cv_why *why) {
  struct session *session = data;
  const struct cv_anchor_mark mark = session->transaction.mark, before = session->term.mark;
  CV_TRY(store(session, why));
  session->term.prior = mark.commit != before.commit ? before.hash : session->term.prior;
  session->term.mark = mark;
  rollback(session);
  return CV_OK;
}

static void change(struct session *session, struct change change) {
  change.commit = session->transaction.mark.commit;
  change.term = session->transaction.mark.term;
  changes_add(&session->transaction.changes, &change);
}

static enum cv_err write(void *data, const struct cv_op *op, const uint8_t *bytes, size_t n, struct cv_why *why) {
  change(data, (struct change){.kind = op->kind,
                               .campaign = op->campaign,
                               .chunk = op->chunk,
                               .number = op->number,
                               .bytes = (uint8_t *)(uintptr_t)bytes,
                               .n = n});
  return CV_OK;
}

static enum cv_err purge(void *data, uint32_t campaign, struct cv_why *why) {
  change(data, (struct change){.kind = CV_OP_PURGE, .campaign = campaign});
  return CV_OK;
}

static enum cv_err drop(void *data, uint32_t campaign, uint64_t number, struct cv_why *why) {
  change(data, (struct change){.kind = CV_OP_DROP, .campaign = campaign, .number = number});
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

static enum cv_err each(void *data, enum cv_backend_query query, uint32_t campaign, cv_backend_row_fn *take,
                        void *taker, struct cv_why *why) {
  struct session *session = data;
  enum cv_err err = is_gone(session)
                        ? lose(session, "the connection is lost", why)
                        : database_each(&session->server->now, query, campaign, set_term, session, take, taker, why);
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

/* ---- wrapped keys ---- */

static enum cv_err put_key(void *data, const struct cv_vault_row *row, struct cv_why *why) {
  struct cv_vault_row copy;
  memset(&copy, 0, sizeof(copy));
  copy = *row;
  change(data, (struct change){.kind = DATABASE_KEY,
                               .campaign = row->campaign,
                               .number = row->use,
                               .bytes = (uint8_t *)&copy,
                               .n = sizeof(copy)});
  return CV_OK;
}

static enum cv_err drop_keys(void *data, uint32_t campaign, struct cv_why *why) {
  change(data, (struct change){.kind = DATABASE_KEYS_DROPPED, .campaign = campaign});
  return CV_OK;
}

static enum cv_err get_key(void *data, uint32_t campaign, uint32_t use, struct cv_vault_row *ret, bool *ret_found,
                           struct cv_why *why) {
  const struct session *session = data;
  *ret_found = database_key(&session->server->now, &session->transaction.changes, campaign, use, ret);
  return CV_OK;
}

/* What is asked of all keys. */
struct question {
  const struct cv_key_id *master;
  struct cv_vault_row *other;
  bool is_found;
  struct cv_vault_count count;
  enum cv_err (*take)(void *taker, const struct cv_key_id *id, struct cv_why *why);
  void *taker;
  struct cv_why *why;
};

static enum cv_err look_at_key(void *data, const struct cv_vault_row *row) {
  struct question *question = data;
  if (question->take != NULL) {
    return question->take(question->taker, &row->master, question->why);
  }
  bool is_current = memcmp(row->master.bytes, question->master->bytes, sizeof(row->master.bytes)) == 0;
  question->count.keys++;
  question->count.current += is_current;
  if (!is_current && question->other != NULL) {
    question->is_found = true;
    *question->other = *row;
  }
  return CV_OK;
}

static enum cv_err other_key(void *data, const struct cv_key_id *master, struct cv_vault_row *ret, bool *ret_found,
                             struct cv_why *why) {
  const struct session *session = data;
  struct question question = {.master = master, .other = ret};
  enum cv_err err = database_keys(&session->server->now, look_at_key, &question);
  *ret_found = question.is_found;
  return err;
}

static enum cv_err masters(void *data, enum cv_err (*take)(void *, const struct cv_key_id *, struct cv_why *),
                           void *taker, struct cv_why *why) {
  const struct session *session = data;
  struct question question = {.take = take, .taker = taker, .why = why};
  return database_keys(&session->server->now, look_at_key, &question);
}

static enum cv_err count_keys(void *data, const struct cv_key_id *master, struct cv_vault_count *ret,
                              struct cv_why *why) {
  const struct session *session = data;
  struct question question = {.master = master};
  enum cv_err err = database_keys(&session->server->now, look_at_key, &question);
  *ret = question.count;
  return err;
}

static enum cv_err secrets(void *data, uint32_t after, uint32_t *ret, struct cv_why *why) {
  *ret = 0;
  return CV_OK;
}

static enum cv_err begin_keys(void *data, struct cv_why *why) {
  struct session *session = data;
  const struct cv_anchor_mark mark = session->term.mark;
  return begin(session, &mark, why);
}

static enum cv_err scrub(void *data, struct cv_why *why) {
  return CV_OK;
}

static const char *name(void *data) {
  return "the server";
}

/* ---- the term ---- */

static enum cv_err read_all(void *data, struct cv_why *why) {
  struct session *session = data;
  struct cv_term *term = &session->term;
  const struct database *now = &session->server->now;
  if (is_gone(session)) {
    return lose(session, "the connection is lost", why);
  }
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
  static const struct cv_vault_rows_ops ops = {.put = put_key,
                                               .drop = drop_keys,
                                               .get = get_key,
                                               .other = other_key,
                                               .masters = masters,
                                               .count = count_keys,
                                               .secrets = secrets,
                                               .begin = begin_keys,
                                               .commit = commit,
                                               .rollback = rollback,
                                               .scrub = scrub,
                                               .name = name};
  struct session *session = data;
  struct cv_term *term = &session->term;
  cv_vault_free(term->vault);
  CV_REQUIRE(cv_vault_new(&session->server->world->ring, &term->vault) == CV_OK);
  return cv_vault_open(term->vault, (struct cv_vault_rows){.ops = &ops, .data = session}, term->mark.database, 0, why);
}

/* Ends the lock of a holder that has stood still. Its session stays: a real server ends it, too; here only the fence
 * keeps it from committing. */
static enum cv_err see_holder(void *data, bool *ret_is_held, struct cv_why *why) {
  struct session *session = data;
  struct server *server = session->server;
  uint64_t now_ms = server->world->now_ms;
  bool is_same = server->holder == session->seen && server->holder_active_ms == session->seen_active_ms;
  if (!is_same || server->holder == 0 || server->is_in_doubt) {
    session->seen = server->holder;
    session->seen_active_ms = server->holder_active_ms;
    session->still_since_ms = now_ms;
  } else if (now_ms - session->still_since_ms >= STILL_MS) {
    world_log(server->world, "server: the session of the holder is ended");
    tally(TALLY_TERMINATED);
    server->holder = 0;
  }
  *ret_is_held = server->holder != 0;
  return CV_OK;
}

static enum cv_err try_lock(void *data, bool *ret_is_ours, struct cv_why *why) {
  struct session *session = data;
  struct server *server = session->server;
  *ret_is_ours = server->holder == 0 && !server->is_in_doubt; /* in doubt, the fence's row is locked, too */
  if (*ret_is_ours) {
    server->holder = session->number;
    server->holder_active_ms = server->world->now_ms;
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
  term->mark.has_codes = true;
  CV_TRY(open_vault(session, why));
  CV_TRY(begin(session, &term->mark, why));
  CV_TRY(cv_vault_begin(term->vault, why));
  apply(session->server, &session->transaction);
  now->prior = term->prior = term->mark.hash;
  now->is_new = term->is_new = false;
  rollback(session);
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
  CV_TRY(begin_keys(data, why));
  return commit(data, why);
}

static enum cv_err begin_term(void *data, const uint8_t id[CV_TERM_ID_BYTES], struct cv_why *why) {
  struct session *session = data;
  struct cv_anchor_mark mark = session->term.mark;
  struct cv_lineage_term item = {.number = mark.term + 1, .commit_before = mark.commit, .hash_before = mark.hash};
  memcpy(item.id, id, sizeof(item.id));
  mark.term = item.number;
  memcpy(mark.term_id, id, sizeof(mark.term_id));
  CV_TRY(begin(session, &mark, why));
  session->transaction.has_term = true;
  session->transaction.term = item;
  CV_TRY(commit(session, why));
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
                                            .where = name};

static void connect(struct session *session) {
  session->number = ++session->server->sessions;
  session->generation = session->server->generation;
  session->is_lost = false;
  session->seen = 0;
  cv_lineage_fini(&session->term.lineage);
}

enum cv_err session_open(struct server *server, const char *anchor, struct session **ret, struct cv_why *why) {
  struct session *session = calloc(1, sizeof(*session));
  CV_REQUIRE(session != NULL);
  session->server = server;
  session->term = (struct cv_term){.ops = &term_ops, .data = session};
  *ret = session;
  connect(session);
  return cv_anchor_open(anchor, &session->term.anchor, &session->term.has_anchor, &session->term.anchored, why);
}

void session_close(struct session *session, bool lingers) {
  if (session == NULL) {
    return;
  }
  if (!lingers) {
    release(session->server, session->number);
  }
  changes_clear(&session->transaction.changes);
  cv_term_fini(&session->term);
  free(session);
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
    rollback(session);
    release(session->server, session->number);
    session->is_lost = true;
    return err;
  }
  *ret_taken = is_ours;
  return CV_OK;
}

enum cv_err session_store(struct session *session, struct cv_broker_store **ret, struct cv_why *why) {
  static const struct cv_backend_ops ops = {.begin = begin,
                                            .write = write,
                                            .purge = purge,
                                            .drop = drop,
                                            .commit = commit,
                                            .rollback = rollback,
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
    rollback(session);
  }
  return err;
}

/* ---- faults ---- */

void server_next(struct server *server, enum fate fate) {
  server->next = fate;
}

void server_cut(struct server *server) {
  if (server->holder != 0) {
    server->cut = server->holder;
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
