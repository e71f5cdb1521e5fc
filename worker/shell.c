/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/shell.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/admin/metrics.h"
#include "common/base/clock.h"
#include "common/base/grid.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/crypto/ring.h"
#include "common/daemon/daemon.h"
#include "common/net/address.h"
#include "common/page/bind.h"
#include "worker/core.h"
#include "worker/keeper.h"
#include "worker/programs.h"
#include "worker/stalled.h"
#include "worker/store.h"

enum { TICK_MS = 20 };

struct shell {
  const struct cv_worker_settings *settings;
  struct cv_daemon *daemon;
  struct cv_works works;
  struct cv_worker_store *store; /* NULL: no state folder */
  struct cv_stock *stock;        /* NULL: the data have no worker column */
  struct cv_worker *core;
  struct cv_spawner spawner;
  struct cv_programs *programs; /* NULL: no program gives the scores */
  struct cv_invited invited;
  int form_socket; /* bound; -1: none, or taken by `form` */
  unsigned form_port;
  struct cv_proxies proxies; /* of the form */
  struct cv_form *form;      /* NULL: no people give them */
  struct cv_duo *pairs;      /* accept.pairs; owned */
  size_t pair_count;
  struct cv_session_ops session;
  struct cv_lane *broker, *cobroker; /* NULL while it is not connected */
  struct cv_crowd_frame frame;       /* of this turn */
  struct cv_share_frame share;       /* likewise, to the co-broker */
  bool speaks, shares;               /* it is not sent yet */
  bool announced;                    /* the first connection was reported on stdout */
  struct cv_ring row_key;            /* empty: no such file */
  struct cv_keeper keeper;           /* if there is a store */
};

/* ---- connections ---- */

static enum cv_err join(void *party, const struct cv_identity *identity, struct cv_lane *lane, void **ret_conn,
                        struct cv_why *why) {
  struct shell *shell = party;
  /* One connection at a time to each, so that the place of its lane is the handle. */
  struct cv_lane **at = identity->role == CV_ROLE_COBROKER ? &shell->cobroker : &shell->broker;
  *ret_conn = at;
  *at = lane;
  if (at == &shell->cobroker) {
    cv_worker_join_co(shell->core, &identity->key);
    return CV_OK;
  }
  cv_worker_join(shell->core, &identity->key, cv_clock_mono_ms());
  if (!shell->announced) {
    const struct cv_identity *own = cv_daemon_identity(shell->daemon);
    /* Printed once: scripts wait for this line, and reconnections are in the log. */
    shell->announced = true;
    (void)printf("crowdveil-worker connected as %s/%s\n", cv_role_text(own->role), own->name);
    (void)fflush(stdout);
  }
  return CV_OK;
}

static void leave(void *party, void *conn) {
  struct shell *shell = party;
  if (conn == &shell->cobroker) {
    shell->cobroker = NULL;
    shell->shares = false;
    cv_worker_leave_co(shell->core);
    return;
  }
  shell->broker = NULL;
  /* The frame of this turn is for a connection that is gone: its tokens are sent again on the next one. */
  shell->speaks = false;
  cv_worker_leave(shell->core);
}

static enum cv_err feed_crowd(void *party, void *conn, const void *frame, uint64_t now_ms, uint64_t wall_ms,
                              struct cv_why *why) {
  const struct shell *shell = party;
  return cv_worker_on_crowd(shell->core, frame, now_ms, why);
}

static enum cv_err feed_share(void *party, void *conn, const void *frame, uint64_t now_ms, uint64_t wall_ms,
                              struct cv_why *why) {
  const struct shell *shell = party;
  return cv_worker_on_share(shell->core, frame, now_ms, why);
}

static bool next_out(void *party, struct cv_lane_out *ret) {
  struct shell *shell = party;
  if (shell->shares) {
    *ret = (struct cv_lane_out){.lane = shell->cobroker, .frame = &shell->share};
    shell->shares = false;
    return true;
  }
  *ret = (struct cv_lane_out){.lane = shell->broker, .frame = &shell->frame};
  bool speaks = shell->speaks;
  shell->speaks = false;
  return speaks;
}

static const struct cv_lane_kind kinds[] = {
    {.roles = 1U << CV_ROLE_BROKER, .wire = &CV_CROWD_WIRE, .feed = feed_crowd},
    {.roles = 1U << CV_ROLE_COBROKER, .wire = &CV_SHARE_WIRE, .feed = feed_share},
};

/* ---- sessions with the co-broker ---- */

/* The key of a session is one of this connection, and nobody else's: neither the broker's, through which the shares
 * pass, nor that of another connection. */
static enum cv_err open_session(void *data, const struct cv_digest *context, void **ret) {
  const struct shell *shell = data;
  struct cv_seal *seal = NULL;
  struct cv_key key;
  if (shell->cobroker == NULL) {
    return CV_ERR_CLOSED;
  }
  enum cv_err err = cv_lane_export(shell->cobroker, CV_SPLIT_EXPORTER, context->bytes, sizeof(context->bytes),
                                   key.bytes, sizeof(key.bytes));
  if (err == CV_OK) {
    err = cv_seal_new(&key, &seal);
  }
  cv_key_wipe(&key);
  *ret = seal;
  return err;
}

static enum cv_err seal_seed(void *data, void *key, uint64_t counter, const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                             const uint8_t seed[CV_SPLIT_SEED_BYTES], uint8_t ret[CV_SPLIT_SEALED_BYTES]) {
  uint8_t nonce[CV_SPLIT_SEAL_NONCE_BYTES];
  cv_split_seal_nonce(counter, nonce);
  return cv_seal_close_at(key, nonce, bound, CV_SPLIT_BOUND_BYTES, seed, CV_SPLIT_SEED_BYTES, ret);
}

static void close_session(void *data, void *key) {
  cv_seal_free(key);
}

/* ---- the turn ---- */

static bool is_pending(void *party) {
  const struct shell *shell = party;
  return cv_worker_is_pending(shell->core);
}

/* Adds the rows in this turn's frame to the next commit. */
static enum cv_err note_rows(struct shell *shell) {
  size_t rows = 0;
  const uint32_t *row = shell->stock == NULL ? NULL : cv_stock_taken(shell->stock, &rows);
  if (rows > 0) {
    CV_TRY(cv_worker_store_note_rows(shell->store, row, rows));
    cv_stock_kept(shell->stock);
  }
  return CV_OK;
}

/* Makes this turn's frame. Its counts and rows are noted in the store by now but not on disk: *ret_store makes the
 * daemon commit before it sends the frame. */
static enum cv_err flush(void *party, uint64_t now_ms, uint64_t wall_ms, bool *ret_store) {
  struct shell *shell = party;
  shell->shares = cv_worker_flush_share(shell->core, now_ms, &shell->share);
  shell->speaks = cv_worker_flush(shell->core, now_ms, &shell->frame);
  *ret_store = shell->store != NULL;
  return cv_worker_has_failed(shell->core) || shell->keeper.failed ? CV_ERR_NOMEM : note_rows(shell);
}

static enum cv_err commit(void *party, struct cv_why *why) {
  struct shell *shell = party;
  return cv_worker_store_commit(shell->store, why);
}

/* The frame was made by the flush and is sent after this call. */
static void stored(void *party) {
}

static void tick(void *party, uint64_t now_ms, uint64_t wall_ms) {
  static const struct cv_why why = {.text = "the process that runs them has ended"};
  const struct shell *shell = party;
  if (shell->programs != NULL && !cv_programs_tick(shell->programs, now_ms)) {
    cv_daemon_fail(shell->daemon, "no program can be started any more", &why);
  }
  if (shell->form != NULL) {
    cv_form_tick(shell->form, now_ms);
  }
  cv_worker_tick(shell->core);
}

static bool is_done(const void *party) {
  const struct shell *shell = party;
  return shell->settings->exit_when_done && cv_worker_is_done(shell->core);
}

/* ---- admin endpoint: counts only, never a score or its worker ---- */

static enum cv_err health(void *party, struct cv_why *why) {
  const struct shell *shell = party;
  if (shell->broker == NULL) {
    return cv_fail(why, CV_ERR_STATE, "the broker is not connected");
  }
  return shell->cobroker != NULL || shell->settings->cobroker == NULL
             ? CV_OK
             : cv_fail(why, CV_ERR_STATE, "the co-broker is not connected");
}

static void status(void *party, char *text, size_t size) {
  const struct shell *shell = party;
  struct cv_worker_figures figures;
  cv_worker_figures(shell->core, &figures);
  (void)snprintf(text, size, "campaigns: %u; tokens accepted: %llu", figures.campaigns,
                 (unsigned long long)figures.accepted);
}

static void metrics(void *party, const struct cv_refusals *network, struct cv_buf *out) {
  const struct shell *shell = party;
  const struct cv_identity *own = cv_daemon_identity(shell->daemon);
  struct cv_worker_figures figures;
  cv_worker_figures(shell->core, &figures);
  cv_metric_gauge(out, "crowdveil_worker_connected", "1 while the broker is connected.", shell->broker != NULL);
  cv_metric_gauge(out, "crowdveil_worker_ids", "Workers in the certificate's range.",
                  (double)(own->last - own->first) + 1);
  cv_metric_gauge(out, "crowdveil_worker_campaigns", "Campaigns whose terms were accepted since the start.",
                  figures.campaigns);
  cv_metric_counter(out, "crowdveil_worker_tokens_accepted_total", "Tokens that the broker accepted.",
                    figures.accepted);
  cv_metric_counter(out, "crowdveil_worker_tokens_duplicates_total", "Tokens sent again that the broker had already.",
                    figures.duplicates);
  cv_metric_counter(out, "crowdveil_worker_tokens_expired_total", "Tokens that reached the broker too late.",
                    figures.expired);
  cv_metric_counter(out, "crowdveil_worker_tokens_refused_total", "Tokens that the broker refused.", figures.refused);
  if (shell->settings->cobroker != NULL) {
    cv_metric_gauge(out, "crowdveil_worker_cobroker_connected", "1 while the co-broker is connected.",
                    shell->cobroker != NULL);
    cv_metric_gauge(out, "crowdveil_worker_sessions", "Campaigns with two brokers that have a session now.",
                    figures.sessions);
    cv_metric_counter(out, "crowdveil_worker_sessions_missed_total",
                      "Assignments declined since no session with the co-broker came within their lease.",
                      figures.unheld);
  }
  if (shell->settings->exec != NULL) {
    cv_metric_gauge(out, "crowdveil_worker_programs", "Programs that run and give scores.",
                    shell->programs == NULL ? 0 : cv_programs_running(shell->programs));
    cv_metric_counter(out, "crowdveil_worker_questions_total", "Questions asked of programs.", figures.asked);
    cv_metric_counter(out, "crowdveil_worker_questions_late_total", "Assignments without an answer within their lease.",
                      figures.late);
    cv_metric_counter(out, "crowdveil_worker_questions_passed_total", "Assignments that the programs declined or lost.",
                      figures.passed);
  }
  cv_metric_refusals(out, network);
}

/* ---- start and end ---- */

static void stalled(void *data, const char *campaign, const char *why) {
  const struct shell *shell = data;
  cv_stalled_write(shell->settings->state, campaign, why);
}

/* Log lines of the core all concern the broker or the co-broker, so they share its log rate limit. */
static void note(void *data, const char *text) {
  const struct shell *shell = data;
  cv_daemon_note(shell->daemon, &(struct cv_note){.level = CV_LOG_INFO, .peer = "broker", .text = text});
}

static void give(void *data, uint64_t worker, uint32_t scores) {
  const struct shell *shell = data;
  cv_worker_store_note(shell->store, worker, scores);
}

/* The key that is shared with other workers; NULL: there is none. */
static const uint8_t *key_of(const struct shell *shell) {
  return shell->row_key.n == 0 ? NULL : shell->row_key.item[0].key->bytes;
}

enum cv_err cv_worker_check_state(const struct cv_worker_settings *settings, struct cv_why *why) {
  /* Without a state folder every restart would reset the counts. */
  return settings->state != NULL || settings->accept_tokens == 0
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID,
                       "missing state; expected a state folder for the counts of given tokens, as accept.tokens is "
                       "%" PRIu64 ", or accept.tokens: 0 for no limit",
                       settings->accept_tokens);
}

/* What a start without a state folder could not know, or may do without. */
static enum cv_err check_no_store(const struct shell *shell, struct cv_why *why) {
  const struct cv_worker_settings *settings = shell->settings;
  const char *file = cv_works_remembers(&shell->works, cv_accept_is_local(settings->accept_privatizers));
  CV_TRY(cv_worker_check_state(settings, why));
  return file == NULL || (key_of(shell) != NULL && settings->part == NULL)
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID,
                       "missing state; expected a state folder for the key and the record of the rows of %s, each of "
                       "which leaves once",
                       file);
}

/* The path may come to lead to another file, and the file may be reached by another path. The file first: a path by
 * which it is refused is not recorded. */
static enum cv_err store_data(struct shell *shell, const struct cv_work *work, struct cv_why *why) {
  CV_TRY(cv_worker_store_data(shell->store, work->real_file, work->print, why));
  return cv_worker_store_data(shell->store, work->file, work->print, why);
}

/* A second gateway of the file would not have this one's order, or its coins. It cannot be seen from here. */
static void say_own_order(const struct shell *shell) {
  const char *file = cv_works_remembers(&shell->works, cv_accept_is_local(shell->settings->accept_privatizers));
  if (file != NULL && shell->works.persons == NULL && shell->settings->part == NULL) {
    cv_log(CV_LOG_INFO,
           "the rows of %s leave in an order of this worker's own; another one with the same file needs the "
           "same row_key, or each a part of the rows",
           file);
  }
}

static enum cv_err open_store(struct shell *shell, struct cv_why *why) {
  const struct cv_worker_settings *settings = shell->settings;
  const struct cv_identity *own = cv_daemon_identity(shell->daemon);
  const uint8_t *key = key_of(shell);
  if (settings->state == NULL) {
    CV_TRY(check_no_store(shell, why));
    if (key != NULL) {
      cv_works_order(&shell->works, key);
    }
    return CV_OK;
  }
  CV_TRY(cv_worker_store_open(settings->state, own->first, own->last, key, cv_daemon_rng(shell->daemon), &shell->store,
                              why));
  cv_stalled_clear(settings->state);
  for (size_t i = 0; i < shell->works.works; i++) {
    const struct cv_work *work = &shell->works.work[i];
    CV_TRY(work->print == 0 ? CV_OK : store_data(shell, work, why));
  }
  cv_works_order(&shell->works, cv_worker_store_key(shell->store));
  if (key == NULL) {
    say_own_order(shell);
  }
  return CV_OK;
}

static bool mark_row(void *data, uint64_t row) {
  return cv_stock_mark(data, row);
}

/* Makes the stock: the persons of the data file in the certificate's range, without the rows given in earlier runs. */
static enum cv_err open_stock(struct shell *shell, struct cv_why *why) {
  const struct cv_works *works = &shell->works;
  const struct cv_persons *persons = works->persons;
  const struct cv_identity *own = cv_daemon_identity(shell->daemon);
  if (persons == NULL || shell->settings->exec != NULL || shell->settings->form.listen != NULL) {
    return CV_OK;
  }
  if (shell->store == NULL) {
    return cv_fail(why, CV_ERR_INVALID,
                   "missing state; expected a state folder for the rows given, as items.worker is set");
  }
  const struct cv_stock_config config = {.persons = persons,
                                         .first_worker = works->first_worker,
                                         .first = own->first,
                                         .last = own->last,
                                         .arms = works->work[0].arms,
                                         .seed = works->seed};
  if (cv_stock_new(&config, &shell->stock) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  if (cv_stock_persons(shell->stock) == 0) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: the file's persons are workers %" PRIu64 " to %" PRIu64
                   "; expected some in the certificate's range %" PRIu64 "-%" PRIu64,
                   works->file, works->first_worker, works->first_worker + persons->persons - 1, own->first, own->last);
  }
  return cv_worker_store_rows(shell->store, works->work[0].print, mark_row, shell->stock, why);
}

/* Only with the option unsafe_show, and only on standard output. */
static void show(void *data, uint64_t worker, uint32_t arm, int64_t score, int64_t value) {
  (void)printf("UNSAFE shown: worker %" PRIu64 " arm %" PRIu32 " score %.6f token %.6f\n", worker, arm,
               (double)score / (double)CV_GRID, (double)value / (double)CV_GRID);
  (void)fflush(stdout);
}

static uint64_t beginning_of(const uint8_t bytes[8]) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; i++) {
    number = number << 8 | bytes[i];
  }
  return number;
}

/* The first eight bytes of both: of the co-broker's share as it is sealed. */
static void show_shares(void *data, uint64_t worker, const struct cv_token_share *share) {
  CV_REQUIRE(share->leader_bytes >= 8);
  (void)printf("UNSAFE shown: worker %" PRIu64 " shares %016" PRIx64 " %016" PRIx64 "\n", worker,
               beginning_of(share->leader), beginning_of(share->sealed));
  (void)fflush(stdout);
}

/* ---- a program that gives the scores ---- */

static void answered(void *data, uint64_t question, int64_t score) {
  const struct shell *shell = data;
  struct cv_why why; /* a question that has just been withdrawn, or no memory: the turn sees it */
  (void)!cv_worker_answer(shell->core, question, &(struct cv_score_answer){.value = score}, &why);
}

static void passed(void *data, uint64_t question, const char *reason) {
  enum { AGAIN_MS = 1000 };
  const struct shell *shell = data;
  cv_worker_pass(shell->core, question, reason, cv_clock_mono_ms() + AGAIN_MS);
}

/* Before a key is read: the process that it forks must not have one. */
static enum cv_err start_spawner(struct shell *shell, struct cv_why *why) {
  const struct cv_worker_settings *settings = shell->settings;
  struct cv_spawner_config config = {
      .command = settings->exec, .slots = (unsigned)settings->exec_processes, .sandbox = settings->daemon.sandbox};
  if (settings->exec == NULL) {
    return CV_OK;
  }
  config.sandbox.user = settings->exec_user != NULL ? settings->exec_user : config.sandbox.user;
  return cv_spawner_start(&config, &shell->spawner, why);
}

static enum cv_err open_programs(struct shell *shell, struct cv_why *why) {
  const struct cv_worker_settings *settings = shell->settings;
  const struct cv_programs_config config = {.loop = cv_daemon_loop(shell->daemon),
                                            .spawner = &shell->spawner,
                                            .slots = (unsigned)settings->exec_processes,
                                            .ahead = (unsigned)settings->exec_ahead,
                                            .timeout_ms = settings->exec_timeout_ms,
                                            .answer = answered,
                                            .pass = passed,
                                            .data = shell};
  if (settings->exec == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_programs_tell(&shell->spawner, settings->daemon.sandbox.mode == CV_SANDBOX_REQUIRE, why));
  return cv_programs_start(&config, &shell->programs, why);
}

/* ---- people who give them ---- */

static enum cv_err form_answered(void *data, uint64_t question, const struct cv_score_answer *answer,
                                 struct cv_why *why) {
  const struct shell *shell = data;
  return cv_worker_answer(shell->core, question, answer, why);
}

static bool come(void *data, uint64_t worker) {
  const struct shell *shell = data;
  return cv_worker_come(shell->core, worker);
}

static uint64_t used_limit(void *data, uint64_t worker) {
  const struct shell *shell = data;
  return cv_worker_used_limit(shell->core, worker);
}

/* As the user that started the daemon: the port and the file may need it. */
static enum cv_err bind_form(struct shell *shell, struct cv_why *why) {
  const struct cv_form_settings *form = &shell->settings->form;
  if (form->listen == NULL) {
    return CV_OK;
  }
  if (shell->settings->exec != NULL) {
    return cv_fail(why, CV_ERR_INVALID, "form and exec; expected one of them, as each gives the scores");
  }
  if (form->people == NULL) {
    return cv_fail(why, CV_ERR_INVALID, "missing form_people; expected the file of the people who may open the form");
  }
  shell->proxies.has_loopback = form->has_tls;
  if (form->proxy != NULL && cv_proxies_read(form->proxy, &shell->proxies, why) != CV_OK) {
    cv_why_prefix(why, "form_proxy");
    return CV_ERR_FORMAT;
  }
  CV_TRY(cv_invited_read(form->people, &shell->invited, why));
  return cv_page_bind("form", form->listen, form->hosts != NULL, &shell->form_socket, &shell->form_port, why);
}

/* Prints "http://HOST:PORT/", where people find the form. */
static void say_form(const struct cv_form_settings *form, unsigned port, const char *token) {
  const char *hosts = form->hosts;
  size_t n = 0;
  const char *host = hosts == NULL ? NULL : cv_text_word(&hosts, &n);
  if (host == NULL) {
    host = form->listen;
    n = (size_t)(strrchr(form->listen, ':') - form->listen);
  }
  (void)printf("%s://%.*s", form->has_tls ? "https" : "http", (int)n, host);
  if (!form->has_tls) { /* the proxy has a port of its own */
    (void)printf(":%u", port);
  }
  (void)printf("/%s%s\n", token == NULL ? "" : "?token=", token == NULL ? "" : token);
}

static enum cv_err open_form(struct shell *shell, struct cv_why *why) {
  const struct cv_worker_settings *settings = shell->settings;
  const struct cv_identity *own = cv_daemon_identity(shell->daemon);
  const struct cv_form_config config = {.loop = cv_daemon_loop(shell->daemon),
                                        .settings = &settings->form,
                                        .invited = &shell->invited,
                                        .first = own->first,
                                        .last = own->last,
                                        .socket = shell->form_socket,
                                        .port = shell->form_port,
                                        .proxies = shell->proxies,
                                        .rng = cv_daemon_rng(shell->daemon),
                                        .answer = form_answered,
                                        .pass = passed,
                                        .come = come,
                                        .used_limit = used_limit,
                                        .data = shell};
  if (settings->form.listen == NULL) {
    return CV_OK;
  }
  shell->form_socket = -1;
  CV_TRY(cv_form_start(&config, &shell->form, why));
  (void)printf("form for %zu people on ", shell->invited.people);
  say_form(&settings->form, shell->form_port, NULL);
  (void)fflush(stdout);
  return CV_OK;
}

int cv_worker_invite(const void *data) {
  const struct cv_worker_settings *settings = data;
  const struct cv_form_settings *form = &settings->form;
  struct cv_invited invited;
  struct cv_address address;
  struct cv_drbg drbg;
  struct cv_why why;
  if (settings->form_invite == 0) {
    return -1;
  }
  enum cv_err err = form->people == NULL || form->listen == NULL
                        ? cv_fail(&why, CV_ERR_INVALID, "form_invite without form or form_people; expected both")
                        : cv_address_parse(form->listen, &address, &why);
  if (err == CV_OK) {
    cv_drbg_init(&drbg);
    err = cv_invited_add(form->people, settings->form_invite, &drbg.rng, &invited, &why);
    cv_drbg_fini(&drbg);
  }
  if (err != CV_OK) {
    cv_log_early("crowdveil-worker", CV_LOG_ERROR, "%s", why.text);
    return cv_config_exit_status(err);
  }
  for (size_t i = 0; i < invited.people; i++) {
    (void)printf("%" PRIu64 " ", invited.person[i].number);
    say_form(form, (unsigned)strtoul(address.port, NULL, 10), invited.person[i].token);
  }
  cv_invited_fini(&invited);
  return 0;
}

static const struct cv_asker *asker_of(const struct shell *shell) {
  return shell->programs != NULL ? cv_programs_asker(shell->programs)
         : shell->form != NULL   ? cv_form_asker(shell->form)
                                 : NULL;
}

/* A program has as many questions as it may have, not more that wait for it while their leases run. */
static uint32_t concurrency_of(const struct cv_worker_settings *settings) {
  uint64_t most = settings->exec == NULL ? settings->concurrency : settings->exec_processes * settings->exec_ahead;
  return (uint32_t)(most < settings->concurrency ? most : settings->concurrency);
}

static enum cv_err open_core(struct shell *shell, struct cv_why *why) {
  const struct cv_worker_settings *settings = shell->settings;
  shell->session = (struct cv_session_ops){.digest = cv_sha256,
                                           .fresh = cv_daemon_rng(shell->daemon),
                                           .open = open_session,
                                           .seal = seal_seed,
                                           .close = close_session,
                                           .data = shell};
  cv_keeper_init(&shell->keeper, shell->store, settings->accept_tokens);
  const struct cv_identity *own = cv_daemon_identity(shell->daemon);
  const struct cv_worker_config config = {
      .first = own->first,
      .last = own->last,
      .concurrency = concurrency_of(settings),
      .arrival_rate = settings->arrival_rate,
      .accept = {.requesters = settings->requesters,
                 .privatizers = settings->accept_privatizers,
                 .mechanisms = settings->accept_mechanisms,
                 .epsilon_micro = (uint64_t)llround(settings->accept_epsilon * (double)CV_MICRO),
                 .delta_pico = (uint64_t)llround(settings->accept_delta * (double)CV_PICO),
                 .pair = shell->pairs,
                 .pairs = shell->pair_count,
                 .tokens = settings->accept_tokens},
      .work = shell->works.work,
      .works = shell->works.works,
      .stock = shell->stock,
      .record = shell->store == NULL ? NULL : &shell->keeper.record,
      .coin_key = shell->store == NULL ? key_of(shell) : cv_worker_store_key(shell->store),
      .asker = asker_of(shell),
      .given = shell->store == NULL ? NULL : cv_worker_store_scores(shell->store),
      .give = shell->store == NULL ? NULL : give,
      .give_data = shell,
      .rng = cv_daemon_rng(shell->daemon),
      .session = &shell->session,
      .show = settings->unsafe_show ? show : NULL,
      .show_shares = settings->unsafe_show ? show_shares : NULL,
      .stalled = settings->state == NULL ? NULL : stalled,
      .note = note,
      .note_data = shell,
  };
  return cv_worker_new(&config, &shell->core, why);
}

enum cv_err cv_worker_read_pairs(const struct cv_worker_settings *settings, struct cv_duo **ret, size_t *ret_pairs,
                                 struct cv_why *why) {
  CV_TRY(cv_accept_read_pairs(settings->accept_pairs, ret, ret_pairs, why));
  if ((*ret_pairs > 0) == (settings->cobroker != NULL)) {
    return CV_OK;
  }
  free(*ret);
  *ret = NULL;
  return cv_fail(why, CV_ERR_INVALID, "%s",
                 settings->cobroker == NULL ? "accept.pairs without cobroker; expected HOST:PORT of the co-broker"
                                            : "cobroker without accept.pairs; expected the pairs of keys to accept");
}

enum cv_err cv_worker_ask_works(const struct cv_worker_settings *settings, struct cv_works_ask *ret,
                                struct cv_why *why) {
  struct cv_works_ask ask = {.seed = settings->seed,
                             .are_asked = settings->exec != NULL || settings->form.listen != NULL};
  if (settings->part != NULL && !cv_works_read_part(settings->part, &ask)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "part is %s; expected K of N, such as 1 of 2, with K from 1 to N and N up to %d",
                   cv_text_quote(settings->part).text, CV_WORKS_PARTS_MAX);
  }
  *ret = ask;
  return CV_OK;
}

/* The first of the workers that share it makes it. */
static enum cv_err open_row_key(struct shell *shell, struct cv_why *why) {
  const char *path = shell->settings->row_key;
  if (path == NULL) {
    return CV_OK;
  }
  enum cv_err err = cv_ring_create(path, cv_clock_wall_ms() / 1000, &shell->row_key, why);
  if (err == CV_OK) {
    cv_log(CV_LOG_WARN,
           "row_key %s was not there and is made: any other worker with the same data file needs a copy of it", path);
  }
  return err == CV_ERR_EXISTS ? cv_ring_read(path, &shell->row_key, why) : err;
}

/* Before the sandbox: campaign and data files may lie anywhere. */
static enum cv_err load_works(void *party, struct cv_daemon *daemon, struct cv_why *why) {
  struct shell *shell = party;
  const struct cv_worker_settings *settings = shell->settings;
  struct cv_works_ask ask;
  shell->daemon = daemon;
  CV_TRY(cv_worker_ask_works(settings, &ask, why));
  CV_TRY(cv_worker_read_pairs(settings, &shell->pairs, &shell->pair_count, why));
  CV_TRY(open_row_key(shell, why));
  CV_TRY(start_spawner(shell, why));
  CV_TRY(bind_form(shell, why));
  return cv_works_load(settings->campaign, &ask, cv_daemon_rng(daemon), &shell->works, why);
}

static enum cv_err open_all(void *party, struct cv_daemon *daemon, struct cv_why *why) {
  struct shell *shell = party;
  /* The stock reads given rows from the store, and the core uses both. */
  CV_TRY(open_store(shell, why));
  CV_TRY(open_stock(shell, why));
  CV_TRY(open_programs(shell, why));
  CV_TRY(open_form(shell, why));
  return open_core(shell, why);
}

static void sum_up(const struct shell *shell) {
  struct cv_worker_figures figures;
  cv_worker_figures(shell->core, &figures);
  (void)printf("%s: %" PRIu64 " tokens accepted, %" PRIu64 " sent again, %" PRIu64 " expired, %" PRIu64 " refused\n",
               "crowdveil-worker", figures.accepted, figures.duplicates, figures.expired, figures.refused);
}

/* Prints the rows given over all runs; only this worker's own state has these counts. */
static void sum_up_rows(const struct shell *shell) {
  const struct cv_persons *persons = shell->works.persons;
  const struct cv_identity *own = cv_daemon_identity(shell->daemon);
  uint64_t given = 0, most = 0;
  for (uint32_t i = 0; i < persons->persons; i++) {
    uint64_t worker = shell->works.first_worker + i;
    if (worker >= own->first && worker <= own->last) {
      uint64_t rows = cv_stock_given(shell->stock, worker);
      given += rows;
      most = rows > most ? rows : most;
    }
  }
  (void)printf("%s: %" PRIu64 " rows of %" PRIu32 " persons given, each once, at most %" PRIu64 " per person\n",
               "crowdveil-worker", given, cv_stock_persons(shell->stock), most);
}

static void say_sums(void *party) {
  const struct shell *shell = party;
  sum_up(shell);
  if (shell->stock != NULL) {
    sum_up_rows(shell);
  }
}

static void stop_all(void *party) {
  struct shell *shell = party;
  cv_programs_stop(shell->programs);
  cv_form_stop(shell->form);
  if (shell->form_socket >= 0) {
    (void)close(shell->form_socket);
    shell->form_socket = -1;
  }
  cv_spawner_stop(&shell->spawner);
}

static void close_all(void *party) {
  struct shell *shell = party;
  /* The core first: it borrows from all the others. */
  cv_worker_free(shell->core);
  cv_worker_store_close(shell->store);
  cv_stock_free(shell->stock);
  cv_works_fini(&shell->works);
  cv_invited_fini(&shell->invited);
  cv_ring_fini(&shell->row_key);
  free(shell->pairs);
}

static enum cv_err database(void *party, struct cv_db **ret, struct cv_why *why) {
  struct shell *shell = party;
  if (shell->store == NULL) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "this worker has no database: its configuration has no `state`");
  }
  *ret = cv_worker_store_database(shell->store);
  return CV_OK;
}

static const struct cv_daemon_ops ops = {
    .prepare = load_works,
    .open = open_all,
    .stop = stop_all,
    .ended = say_sums,
    .close = close_all,
    .lane = {.kind = kinds, .kinds = CV_COUNT(kinds), .join = join, .leave = leave, .next_out = next_out},
    .is_pending = is_pending,
    .flush = flush,
    .commit = commit,
    .stored = stored,
    .tick = tick,
    .is_done = is_done,
    .status = status,
    .database = database,
    .health = health,
    .metrics = metrics,
};

int cv_worker_run(const struct cv_worker_settings *settings) {
  struct shell shell = {.settings = settings, .spawner = {.socket = -1}, .form_socket = -1};
  const struct cv_daemon_config config = {
      .program = "crowdveil-worker",
      .ops = &ops,
      .party = &shell,
      .settings = &settings->daemon,
      .state = settings->state,
      .database = "given.db",
      .roles = 1U << CV_ROLE_WORKER | 1U << CV_ROLE_GATEWAY,
      .dial = {{.address = settings->broker,
                .may_be_several = true,
                .to = {.roles = 1U << CV_ROLE_BROKER, .names = settings->broker_name},
                .called = "broker"},
               {.address = settings->cobroker, .to = {.roles = 1U << CV_ROLE_COBROKER}, .called = "co-broker"}},
      .limits = CV_NET_DEFAULTS,
      .tick_ms = TICK_MS,
      /* No storage thread: a commit is a few counts, and the frame waits for it. */
      .not_lost = "the broker assigns unacknowledged places to other workers",
  };
  return cv_daemon_run(&config);
}
