/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/daemon.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "common/admin/admin.h"
#include "common/base/clock.h"
#include "common/crypto/crypto.h"
#include "common/daemon/backup.h"
#include "common/daemon/errand.h"
#include "common/daemon/gauges.h"
#include "common/daemon/logging.h"
#include "common/daemon/network.h"
#include "common/daemon/notify.h"
#include "common/daemon/trail.h"
#include "common/daemon/turn.h"
#include "common/daemon/watchdog.h"
#include "common/db/committer.h"
#include "common/db/db.h"
#include "common/net/loop.h"
#include "common/net/signals.h"
#include "common/page/site.h"

enum {
  STUCK_MS = 10000, /* a commit that takes longer */
  WORK_MS = 1,      /* between two pieces of work */
  STATUS_MS = 2000,
  EXTEND_MS = 5000,
  STOP_MS = 10000 /* from the end of a drain to the end of the process */
};

struct cv_daemon {
  const struct cv_daemon_config *config;
  const struct cv_daemon_ops *ops;
  void *party;
  uv_loop_t loop;
  struct cv_drbg drbg;
  struct cv_log_limit log_limit;
  struct cv_network network;
  struct cv_admin *admin;
  struct cv_page_site page;
  struct cv_lanes lanes;
  struct cv_trail *trail; /* NULL: no audit log */
  struct cv_turn_ops turn_ops;
  struct cv_turn turn;
  struct cv_committer committer;
  struct cv_daemon_gauges gauges;
  struct cv_backup backup;
  struct cv_errand errand;
  struct cv_signals signals;
  uv_check_t check;
  uv_timer_t tick, pace, work;
  struct cv_watchdog watchdog;
  _Atomic uint64_t steps; /* of the storage, on either thread */
  uint64_t told_ms;       /* last report on the start, or status, to the service manager */
  uint64_t ticked_ms;     /* last tick */
  size_t batch;           /* size of the one that is being stored, and when that began */
  uint64_t batch_ms;
  enum cv_log_level audited; /* level of the log according to the audit log */
  bool has_handles, started, draining, stopping;
  bool was_storing;       /* at the end of the last turn */
  bool stores;            /* the batch being stored has something of the party's */
  bool audits_end;        /* the audit log has the start */
  struct cv_why stop_why; /* why the daemon ends */
  uint64_t drain_until_ms;
};

/* ---- what the party asks for ---- */

struct cv_rng *cv_daemon_rng(struct cv_daemon *daemon) {
  return &daemon->drbg.rng;
}

uv_loop_t *cv_daemon_loop(struct cv_daemon *daemon) {
  return &daemon->loop;
}

const struct cv_identity *cv_daemon_identity(const struct cv_daemon *daemon) {
  return cv_tls_identity(cv_network_own(&daemon->network));
}

void cv_daemon_note(void *data, const struct cv_note *note) {
  struct cv_daemon *daemon = data;
  if (note->peer == NULL) {
    cv_log_note(note);
  } else {
    cv_log_peer(&daemon->log_limit, note, cv_clock_mono_ms());
  }
}

void cv_daemon_audit(void *data, const struct cv_event *event) {
  struct cv_daemon *daemon = data;
  cv_trail_add(daemon->trail, event, cv_clock_mono_ms(), cv_clock_wall_ms());
}

bool cv_daemon_is_storing(const struct cv_daemon *daemon) {
  return cv_turn_is_busy(&daemon->turn);
}

void cv_daemon_show(struct cv_daemon *daemon) {
  cv_page_site_wake(&daemon->page);
}

static void on_work(uv_timer_t *timer) {
  const struct cv_daemon *daemon = timer->data;
  if (!cv_turn_is_busy(&daemon->turn) && !cv_turn_has_failed(&daemon->turn) && !daemon->ops->work(daemon->party)) {
    (void)uv_timer_stop(timer);
  }
}

void cv_daemon_work(struct cv_daemon *daemon) {
  /* By a timer: frames and ticks come in between. */
  if (daemon->has_handles && !uv_is_active((const uv_handle_t *)&daemon->work)) {
    (void)uv_timer_start(&daemon->work, on_work, 0, WORK_MS);
  }
}

void cv_daemon_fail(struct cv_daemon *daemon, const char *what, const struct cv_why *why) {
  cv_turn_fail(&daemon->turn, what, why);
}

bool cv_daemon_borrow(struct cv_daemon *daemon, enum cv_err (*work)(void *data, struct cv_why *why),
                      void (*done)(void *data, enum cv_err err, const struct cv_why *why), void *data) {
  return !daemon->stopping && cv_errand_run(&daemon->errand, work, done, data);
}

/* ---- the end ---- */

static void close_handles(struct cv_daemon *daemon) {
  if (daemon->has_handles) {
    daemon->has_handles = false;
    uv_close((uv_handle_t *)&daemon->check, NULL);
    uv_close((uv_handle_t *)&daemon->tick, NULL);
    uv_close((uv_handle_t *)&daemon->pace, NULL);
    uv_close((uv_handle_t *)&daemon->work, NULL);
  }
}

/* Closes all handles; the loop ends when the last peer is closed and a running commit has returned. */
static void stop(struct cv_daemon *daemon) {
  if (daemon->stopping) {
    return;
  }
  daemon->stopping = true;
  cv_clock_tell_seen(UINT64_MAX); /* no tick follows */
  cv_notify_stopping(STOP_MS);
  /* New peers first, then the open ones: no peer can join while the others are being closed. */
  cv_network_stop(&daemon->network);
  cv_page_site_close(&daemon->page);
  cv_admin_stop(daemon->admin);
  cv_backup_stop(&daemon->backup);
  cv_page_site_free(&daemon->page);
  cv_lanes_close(&daemon->lanes, daemon->config->moves && daemon->draining ? CV_GOODBYE_MOVED : "shutting down");
  daemon->ops->stop == NULL ? (void)0 : daemon->ops->stop(daemon->party);
  close_handles(daemon);
}

static bool may_stop(const struct cv_daemon *daemon) {
  const struct cv_daemon_ops *ops = daemon->ops;
  /* A running commit still uses the party's store. */
  if (cv_turn_is_busy(&daemon->turn)) {
    return false;
  }
  if (!daemon->draining) {
    return ops->is_done != NULL && ops->is_done(daemon->party);
  }
  return ops->is_drained == NULL || ops->is_drained(daemon->party) || cv_clock_mono_ms() >= daemon->drain_until_ms;
}

static void drain(struct cv_daemon *daemon, int number) {
  /* A second signal does not wait for open assignments; whatever is not acknowledged is sent again. */
  if (daemon->draining) {
    stop(daemon);
    return;
  }
  cv_log(CV_LOG_INFO, "draining on signal %d", number);
  (void)cv_fail(&daemon->stop_why, CV_OK, "signal %d", number);
  daemon->draining = true;
  daemon->drain_until_ms = cv_clock_mono_ms() + daemon->config->drain_ms;
  cv_notify_stopping(daemon->config->drain_ms + STOP_MS);
  cv_notify_status(daemon->config->moves ? "ending: another process serves on"
                                         : "draining: open work is finished, nothing new begins");
  if (daemon->ops->drain != NULL) {
    daemon->ops->drain(daemon->party);
  }
}

/* ---- the turn ---- */

static void between(void *data) {
  struct cv_daemon *daemon = data;
  daemon->ops->between(daemon->party);
}

static bool is_pending(void *data) {
  struct cv_daemon *daemon = data;
  return daemon->ops->is_pending(daemon->party) || cv_trail_is_pending(daemon->trail);
}

static size_t gathered(void *data) {
  struct cv_daemon *daemon = data;
  return daemon->ops->gathered(daemon->party);
}

static bool has_rest(void *data) {
  struct cv_daemon *daemon = data;
  return daemon->ops->has_rest(daemon->party);
}

static enum cv_err flush(void *data, bool *ret_store) {
  struct cv_daemon *daemon = data;
  daemon->batch = daemon->ops->gathered == NULL ? 0 : daemon->ops->gathered(daemon->party);
  /* A flush starts a new share of answers for every peer, so paused peers are read again. */
  CV_TRY(daemon->ops->flush(daemon->party, cv_clock_mono_ms(), cv_clock_wall_ms(), &daemon->stores));
  /* Also without a batch: a refusal is on disk before its answer leaves. */
  bool audits = cv_trail_flush(daemon->trail);
  *ret_store = daemon->stores || audits;
  cv_lanes_resume(&daemon->lanes);
  return CV_OK;
}

static enum cv_err commit(void *data, struct cv_why *why) {
  struct cv_daemon *daemon = data;
  /* First, so that nothing is ever done without a line that says so. */
  CV_TRY(cv_trail_write(daemon->trail, why));
  return daemon->stores ? daemon->ops->commit(daemon->party, why) : CV_OK;
}

static void tell_commit(struct cv_daemon *daemon, const char *where) {
  atomic_fetch_add_explicit(&daemon->steps, 1, memory_order_relaxed);
  cv_log(CV_LOG_DEBUG, "commit: %llu ms on %s, batch of %zu",
         (unsigned long long)(cv_clock_mono_ms() - daemon->batch_ms), where, daemon->batch);
}

static enum cv_err commit_here(void *data, struct cv_why *why) {
  struct cv_daemon *daemon = data;
  daemon->batch_ms = cv_clock_mono_ms();
  enum cv_err err = cv_committer_run_here(&daemon->committer, why);
  tell_commit(daemon, "the loop");
  return err;
}

static void hand_over(void *data) {
  struct cv_daemon *daemon = data;
  daemon->batch_ms = cv_clock_mono_ms();
  cv_committer_run(&daemon->committer);
}

static void committed(void *data, enum cv_err err, const struct cv_why *why) {
  struct cv_daemon *daemon = data;
  tell_commit(daemon, "the storage thread");
  cv_turn_committed(&daemon->turn, err, why);
}

static bool is_quick(void *data) {
  const struct cv_daemon *daemon = data;
  return !daemon->config->only_thread && cv_committer_is_quick(&daemon->committer);
}

/* The only place that sends what a batch caused; the turn calls it after the commit (turn.c). */
static void say(void *data) {
  struct cv_daemon *daemon = data;
  daemon->gauges.committed_ms = daemon->stores ? cv_clock_wall_ms() : daemon->gauges.committed_ms;
  daemon->ops->stored(daemon->party);
  cv_lanes_deliver(&daemon->lanes);
}

static void on_pace(uv_timer_t *timer) {
  struct cv_daemon *daemon = timer->data;
  cv_turn_paced(&daemon->turn);
}

static void pace(void *data) {
  struct cv_daemon *daemon = data;
  (void)uv_timer_start(&daemon->pace, on_pace, daemon->config->pace_ms, 0);
}

static void on_failure(void *data, const char *what, const struct cv_why *why) {
  struct cv_daemon *daemon = data;
  cv_log(CV_LOG_ERROR, "%s: %s; stopping, %s", what, why->text, daemon->config->not_lost);
  cv_notify_status(why->text);
  (void)cv_fail(&daemon->stop_why, CV_OK, "%s: %s", what, why->text);
  stop(daemon);
}

static void turn_init(struct cv_daemon *daemon) {
  const struct cv_daemon_config *config = daemon->config;
  const struct cv_daemon_ops *ops = daemon->ops;
  daemon->turn_ops = (struct cv_turn_ops){.between = ops->between == NULL ? NULL : between,
                                          .is_pending = is_pending,
                                          .gathered = ops->gathered == NULL ? NULL : gathered,
                                          .has_rest = ops->has_rest == NULL ? NULL : has_rest,
                                          .flush = flush,
                                          .commit = commit_here,
                                          .hand_over = config->has_thread ? hand_over : NULL,
                                          .is_quick = is_quick,
                                          .say = say,
                                          .pace = config->pace_ms == 0 ? NULL : pace,
                                          .fail = on_failure};
  daemon->turn =
      (struct cv_turn){.ops = &daemon->turn_ops, .data = daemon, .crowd = config->crowd, .full = config->full};
  daemon->committer = (struct cv_committer){.loop = &daemon->loop, .commit = commit, .done = committed, .data = daemon};
  daemon->committer.took_s = (struct cv_histogram){.bound = CV_HISTOGRAM_DISK_S, .bounds = CV_HISTOGRAM_DISK_BOUNDS};
}

/* Whoever changed it, by a signal or through the admin socket. */
static void audit_level(struct cv_daemon *daemon) {
  if (cv_log_level() == daemon->audited) {
    return;
  }
  const struct cv_event_fact facts[] = {{.name = "from", .text = CV_LOG_LEVEL_WORDS[daemon->audited]},
                                        {.name = "to", .text = CV_LOG_LEVEL_WORDS[cv_log_level()]}};
  daemon->audited = cv_log_level();
  cv_daemon_audit(
      daemon, &(struct cv_event){.what = "log_level", .actor = "operator", .fact = facts, .facts = CV_COUNT(facts)});
}

/* All events of one turn of the loop form one batch. */
static void on_turn(uv_check_t *check) {
  struct cv_daemon *daemon = check->data;
  audit_level(daemon);
  cv_turn_over(&daemon->turn);
  cv_backup_turn(&daemon->backup);
  /* A request of the page may have waited for the database. */
  bool is_storing = cv_turn_is_busy(&daemon->turn);
  if (daemon->was_storing && !is_storing) {
    cv_daemon_show(daemon);
  }
  daemon->was_storing = is_storing;
  /* Asked once per turn, after the batch: the last acknowledgements of a drain leave before the end. */
  if (may_stop(daemon)) {
    stop(daemon);
  }
}

/* ---- the service manager ---- */

/* On the thread that uses the database: until the end of the start the only one, later perhaps the storage thread. */
static void on_step(void *data) {
  struct cv_daemon *daemon = data;
  atomic_fetch_add_explicit(&daemon->steps, 1, memory_order_relaxed);
  if (!daemon->started && cv_clock_mono_ms() - daemon->told_ms >= EXTEND_MS) {
    daemon->told_ms = cv_clock_mono_ms();
    cv_notify_extend(CV_NOTIFY_START_MS);
  }
}

static void tell_manager(struct cv_daemon *daemon, uint64_t now_ms) {
  uint64_t steps = atomic_load_explicit(&daemon->steps, memory_order_relaxed);
  bool stood = cv_watchdog_stands(&daemon->watchdog);
  if (cv_watchdog_is_due(&daemon->watchdog, now_ms, cv_turn_is_busy(&daemon->turn), steps)) {
    cv_notify_alive();
  }
  if (!stood && cv_watchdog_stands(&daemon->watchdog)) {
    cv_log(CV_LOG_ERROR, "the storage stands still: the service manager will restart this program");
    cv_notify_status("the storage stands still");
  }
  if (now_ms - daemon->told_ms >= STATUS_MS && !daemon->draining && !cv_watchdog_stands(&daemon->watchdog)) {
    char text[600];
    daemon->told_ms = now_ms;
    daemon->ops->status(daemon->party, text, sizeof(text));
    cv_notify_status(text);
  }
}

static void on_tick(uv_timer_t *timer) {
  struct cv_daemon *daemon = timer->data;
  uint64_t now_ms = cv_clock_mono_ms();
  if (daemon->ops->tick != NULL) {
    daemon->ops->tick(daemon->party, now_ms, cv_clock_wall_ms());
  }
  cv_log_suppressed(&daemon->log_limit, now_ms, false);
  cv_logging_tell_lost();
  tell_manager(daemon, now_ms);
  cv_trail_tick(daemon->trail, now_ms, cv_clock_wall_ms());
  /* Here, too, because a peer that has become slow may get no frame for a while. */
  cv_lanes_hold(&daemon->lanes);
  /* The time of the tick before: since then every timer has looked at the clock. */
  if (!daemon->stopping) {
    cv_clock_tell_seen(daemon->ticked_ms);
  }
  daemon->ticked_ms = now_ms;
}

/* ---- what the lanes ask for ---- */

static void out_of_memory(void *data) {
  struct cv_daemon *daemon = data;
  const struct cv_why why = {.text = "out of memory"};
  cv_turn_fail(&daemon->turn, "cannot continue", &why);
}

static bool has_failed(const void *data) {
  const struct cv_daemon *daemon = data;
  return cv_turn_has_failed(&daemon->turn);
}

static void note_failed(void *data, size_t which, const struct cv_why *why) {
  struct cv_daemon *daemon = cv_lane_data(data);
  const char *called = daemon->config->dial[which].called;
  cv_daemon_note(daemon, &(struct cv_note){.level = CV_LOG_INFO, .peer = called, .text = why->text});
}

static void on_first_failed(void *data, const struct cv_why *why) {
  note_failed(data, 0, why);
}

static void on_second_failed(void *data, const struct cv_why *why) {
  note_failed(data, 1, why);
}

static cv_network_failed_fn *const on_dial_failed[CV_DAEMON_DIALS] = {on_first_failed, on_second_failed};

/* ---- TLS ---- */

/* Only a warning: the daemon must use the new list to refuse others, and its peers decide about itself. */
static void warn_if_revoked(const struct cv_daemon *daemon) {
  if (cv_tls_is_revoked(cv_network_own(&daemon->network))) {
    cv_log(CV_LOG_WARN, "our own certificate is revoked: peers that know this refuse it");
  }
}

/* What a reload has changed, or why it has not. */
static void audit_reload(struct cv_daemon *daemon, const struct cv_tls *to, const char *refused) {
  const struct cv_tls *from = cv_network_own(&daemon->network);
  to = to == NULL ? from : to;
  const struct cv_event_fact facts[] = {{.name = "serial_before", .text = cv_tls_identity(from)->serial},
                                        {.name = "serial_after", .text = cv_tls_identity(to)->serial},
                                        {.name = "denied_added", .number = cv_tls_denied_beyond(to, from)},
                                        {.name = "denied_removed", .number = cv_tls_denied_beyond(from, to)}};
  cv_daemon_audit(daemon, &(struct cv_event){.what = "certificates",
                                             .actor = "operator",
                                             .refused = refused,
                                             .fact = facts,
                                             .facts = refused == NULL ? CV_COUNT(facts) : 0});
}

static void reopen_trail(struct cv_daemon *daemon) {
  struct cv_why why;
  if (cv_trail_reopen(daemon->trail, &why) != CV_OK) {
    cv_log(CV_LOG_ERROR, "keeping the old audit log: %s", why.text);
  }
}

static void reload(struct cv_daemon *daemon) {
  struct cv_network_renewed renewed;
  struct cv_why why;
  if (cv_network_renew(&daemon->network, &renewed, &why) != CV_OK) {
    daemon->gauges.reloads_failed++;
    audit_reload(daemon, NULL, why.text);
    cv_log(CV_LOG_ERROR, "keeping the old certificates: %s", why.text);
    return;
  }
  audit_reload(daemon, cv_network_renewed_own(&renewed), NULL);
  cv_network_use(&daemon->network, &renewed);
  daemon->gauges.reloads++;
  cv_log(CV_LOG_INFO, "certificates reloaded");
  warn_if_revoked(daemon);
  if (daemon->ops->renewed != NULL) {
    daemon->ops->renewed(daemon->party, cv_network_own(&daemon->network));
  }
}

/* Debug, or back to the configured level; a daemon that is configured to debug has info as its other level. */
static void toggle_debug(const struct cv_daemon *daemon) {
  enum cv_log_level own = (enum cv_log_level)daemon->config->settings->log.level;
  enum cv_log_level less = own == CV_LOG_DEBUG ? CV_LOG_INFO : own;
  cv_log_set_level(cv_log_level() == CV_LOG_DEBUG ? less : CV_LOG_DEBUG, "SIGUSR1");
}

static void on_signal(void *data, int number) {
  struct cv_daemon *daemon = data;
  if (number == SIGUSR1) {
    toggle_debug(daemon);
  } else if (number != SIGHUP) {
    drain(daemon, number);
  } else if (!daemon->stopping) {
    reopen_trail(daemon);
    cv_notify_reloading();
    reload(daemon);
    cv_notify_ready();
  }
}

/* ---- the admin endpoint ---- */

static enum cv_err health(void *data, struct cv_why *why) {
  struct cv_daemon *daemon = data;
  return daemon->draining ? cv_fail(why, CV_ERR_STATE, "draining") : daemon->ops->health(daemon->party, why);
}

/* Whether it is worth a peer's while to call: not what the daemon itself waits for (health), but whether it would take
 * and store what a peer sends. The endpoint is opened last, so a daemon that answers has started. */
static enum cv_err ready(void *data, struct cv_why *why) {
  const struct cv_daemon *daemon = data;
  struct cv_tls_ends ends = cv_tls_ends(cv_network_own(&daemon->network));
  int64_t now_s = (int64_t)(cv_clock_wall_ms() / 1000);
  if (daemon->draining) {
    return cv_fail(why, CV_ERR_STATE, "draining");
  }
  if (now_s >= ends.own_s || now_s >= ends.ca_s) {
    return cv_fail(why, CV_ERR_STATE, "the %s has expired", now_s >= ends.own_s ? "certificate" : "CA's certificate");
  }
  if (ends.crl_s != 0 && now_s >= ends.crl_s) {
    return cv_fail(why, CV_ERR_STATE, "the CRL has expired");
  }
  uint64_t stuck_ms = cv_committer_busy_ms(&daemon->committer);
  return stuck_ms < STUCK_MS ? CV_OK
                             : cv_fail(why, CV_ERR_STATE, "the disk is slow: a commit has been running for %llu s",
                                       (unsigned long long)(stuck_ms / 1000));
}

static enum cv_err active(void *data, struct cv_why *why) {
  struct cv_daemon *daemon = data;
  return daemon->draining ? cv_fail(why, CV_ERR_STATE, "draining") : daemon->ops->active(daemon->party, why);
}

static void metrics(void *data, struct cv_buf *out) {
  struct cv_daemon *daemon = data;
  struct cv_daemon_gauges gauges = daemon->gauges;
  gauges.is_healthy = health(daemon, NULL) == CV_OK;
  gauges.is_ready = ready(daemon, NULL) == CV_OK;
  gauges.ends = cv_tls_ends(cv_network_own(&daemon->network));
  gauges.has_crl = daemon->config->settings->channel.crl != NULL;
  gauges.committer = &daemon->committer;
  gauges.state = daemon->config->state;
  gauges.database = daemon->config->database;
  cv_daemon_gauges_put(&gauges, out);
  daemon->ops->metrics(daemon->party, &daemon->lanes.refusals, out);
}

static void seal(void *data, struct cv_admin_line *ret) {
  struct cv_daemon *daemon = data;
  daemon->ops->seal(daemon->party, ret);
}

static enum cv_err rewrap(void *data, struct cv_admin_line *ret, struct cv_why *why) {
  struct cv_daemon *daemon = data;
  return daemon->draining ? cv_fail(why, CV_ERR_STATE, "draining") : daemon->ops->rewrap(daemon->party, ret, why);
}

/* The line in the audit log is written in the turn after this, before the first page is copied. */
static enum cv_err begin_backup(void *data, struct cv_why *why) {
  struct cv_daemon *daemon = data;
  struct cv_db *db = NULL;
  enum cv_err err = daemon->ops->database(daemon->party, &db, why);
  if (err == CV_OK) {
    err = cv_backup_begin(&daemon->backup, db, daemon->config->state, why);
  }
  cv_daemon_audit(
      daemon, &(struct cv_event){.what = "backup", .actor = "operator", .refused = err == CV_OK ? NULL : why->text});
  return err;
}

static void on_copied(void *data, int fd, uint64_t bytes, const struct cv_why *why) {
  struct cv_daemon *daemon = data;
  if (fd < 0) {
    cv_log(CV_LOG_WARN, "backup: %s", why->text);
  } else {
    cv_log(CV_LOG_INFO, "backup: a copy of the database, %llu bytes", (unsigned long long)bytes);
  }
  cv_admin_copied(daemon->admin, fd, bytes, why);
}

/* ---- the start ---- */

static bool serve_page(void *data, struct MHD_Connection *connection, const char *url, void **request,
                       enum MHD_Result *ret) {
  struct cv_daemon *daemon = data;
  return cv_page_site_serve(&daemon->page, connection, url, request, ret);
}

static void end_page(void *data, void **request) {
  struct cv_daemon *daemon = data;
  cv_page_site_ended(&daemon->page, request);
}

static enum cv_err open_admin(struct cv_daemon *daemon, struct cv_why *why) {
  const struct cv_admin_ops ops = {.health = health,
                                   .ready = ready,
                                   .active = daemon->ops->active == NULL ? NULL : active,
                                   .metrics = metrics,
                                   .backup = begin_backup,
                                   .page = serve_page,
                                   .ended = end_page,
                                   .seal = daemon->ops->seal == NULL ? NULL : seal,
                                   .rewrap = daemon->ops->seal == NULL ? NULL : rewrap};
  const char *path = daemon->config->settings->admin;
  return path == NULL ? CV_OK : cv_admin_start(&daemon->loop, path, &ops, daemon, &daemon->admin, why);
}

/* Certificates are read again on SIGHUP, the key file before keys are wrapped anew: it is in memory anyway. */
static enum cv_err enter_sandbox(const struct cv_daemon *daemon, struct cv_why *why) {
  const struct cv_daemon_config *config = daemon->config;
  const struct cv_channel_settings *channel = &config->settings->channel;
  struct cv_sandbox_needs needs = {
      .reads = {channel->ca, channel->cert, channel->key, channel->denied, channel->crl, config->reread},
      .state = config->state,
      .socket = config->settings->admin,
      .appends = config->settings->audit,
      .listens = config->stands_by,
      .dials = {config->dial[0].address, config->dial[1].address}};
  for (size_t i = 0; i < CV_DAEMON_SERVERS; i++) {
    needs.dials[CV_DAEMON_DIALS + i] = config->dials[i];
    needs.reads[CV_SANDBOX_READS - CV_DAEMON_SERVERS + i] = config->reads[i];
  }
  struct cv_sandbox_report report;
  CV_TRY(cv_sandbox_enter(&config->settings->sandbox, &needs, &report, why));
  cv_log(report.whole ? CV_LOG_INFO : CV_LOG_WARN, "sandbox: %s", report.text);
  return CV_OK;
}

static enum cv_err open_trail(struct cv_daemon *daemon, struct cv_why *why) {
  const char *path = daemon->config->settings->audit;
  return path == NULL ? CV_OK : cv_trail_open(path, daemon->config->program, &daemon->trail, why);
}

/* Writes at once; no commit runs. */
static enum cv_err audit_now(struct cv_daemon *daemon, const struct cv_event *event, struct cv_why *why) {
  cv_daemon_audit(daemon, event);
  return cv_trail_flush(daemon->trail) ? cv_trail_write(daemon->trail, why) : CV_OK;
}

static enum cv_err audit_start(struct cv_daemon *daemon, struct cv_why *why) {
  const struct cv_identity *own = cv_daemon_identity(daemon);
  char identity[CV_NAME_BYTES + 16];
  (void)snprintf(identity, sizeof(identity), "%s/%s", cv_role_text(own->role), own->name);
  const struct cv_event_fact facts[] = {{.name = "version", .text = cv_config_version()},
                                        {.name = "identity", .text = identity},
                                        {.name = "identity_serial", .text = own->serial}};
  const struct cv_event event = {.what = "start", .actor = "operator", .fact = facts, .facts = CV_COUNT(facts)};
  daemon->audited = cv_log_level();
  CV_TRY(audit_now(daemon, &event, why));
  daemon->audits_end = true;
  return CV_OK;
}

static void audit_stop(struct cv_daemon *daemon) {
  const char *reason = daemon->stop_why.text[0] != '\0' ? daemon->stop_why.text : "its work is done";
  const struct cv_event_fact fact = {.name = "reason", .text = reason};
  struct cv_why why;
  if (!daemon->audits_end) {
    return;
  }
  /* After a failure the lines that wait tell of what has not happened. */
  cv_trail_drop(daemon->trail);
  const struct cv_event event = {
      .what = "stop", .actor = daemon->draining ? "operator" : NULL, .fact = &fact, .facts = 1};
  if (audit_now(daemon, &event, &why) != CV_OK) {
    cv_log(CV_LOG_ERROR, "the stop is not in the audit log: %s", why.text);
  }
}

static void start_handles(struct cv_daemon *daemon) {
  (void)uv_check_init(&daemon->loop, &daemon->check);
  (void)uv_timer_init(&daemon->loop, &daemon->tick);
  (void)uv_timer_init(&daemon->loop, &daemon->pace);
  (void)uv_timer_init(&daemon->loop, &daemon->work);
  daemon->check.data = daemon->tick.data = daemon->pace.data = daemon->work.data = daemon;
  /* After the loop has polled: all that has arrived by then is in the same batch. */
  (void)uv_check_start(&daemon->check, on_turn);
  unsigned tick_ms = cv_clock_sleep_ms(daemon->config->tick_ms);
  (void)uv_timer_start(&daemon->tick, on_tick, tick_ms, tick_ms);
  daemon->backup = (struct cv_backup){.loop = &daemon->loop, .turn = &daemon->turn, .made = on_copied, .data = daemon};
  cv_backup_start(&daemon->backup);
  daemon->errand = (struct cv_errand){.loop = &daemon->loop, .turn = &daemon->turn};
  daemon->has_handles = true;
  cv_signals_start(&daemon->signals, &daemon->loop, on_signal, daemon);
}

static enum cv_err open_network(struct cv_daemon *daemon, struct cv_why *why) {
  return cv_network_open(&daemon->network, &daemon->loop, daemon->lanes.newcomer, on_dial_failed, &daemon->drbg.rng,
                         why);
}

static void say_port(const struct cv_daemon *daemon, const char *what) {
  const char *listen = daemon->config->listen;
  if (listen != NULL) {
    const char *colon = strrchr(listen, ':');
    int host = colon == NULL ? (int)strlen(listen) : (int)(colon - listen);
    (void)printf("%s %s on %.*s:%u\n", daemon->config->program, what, host, listen,
                 cv_listener_port(daemon->network.listener));
    (void)fflush(stdout);
  }
}

void cv_daemon_serve(struct cv_daemon *daemon) {
  struct cv_why why;
  cv_drbg_drop(&daemon->drbg);
  if (daemon->stopping) {
    return;
  }
  if (open_network(daemon, &why) != CV_OK) {
    cv_daemon_fail(daemon, "cannot serve", &why);
    return;
  }
  say_port(daemon, "ready");
}

static enum cv_err start(struct cv_daemon *daemon, struct cv_why *why) {
  const struct cv_daemon_ops *ops = daemon->ops;
  CV_TRY(ops->prepare == NULL ? CV_OK : ops->prepare(daemon->party, daemon, why));
  CV_TRY(cv_network_load(&daemon->network, why));
  warn_if_revoked(daemon);
  CV_TRY(cv_lanes_init(&daemon->lanes));
  /* The network first, as it may need root and must not leave a new database behind if it fails. */
  CV_TRY(cv_network_bind(&daemon->network, &daemon->loop, daemon->lanes.newcomer, why));
  CV_TRY(daemon->config->stands_by ? CV_OK : open_network(daemon, why));
  CV_TRY(cv_page_site_bind(&daemon->page, daemon->config->page, why));
  CV_TRY(cv_sandbox_become(&daemon->config->settings->sandbox, why));
  CV_TRY(open_trail(daemon, why));
  CV_TRY(ops->open(daemon->party, daemon, why));
  start_handles(daemon);
  CV_TRY(cv_page_site_open(&daemon->page, &daemon->loop, ops->page, daemon->party, &daemon->drbg.rng, why));
  CV_TRY(open_admin(daemon, why));
  CV_TRY(cv_network_check_clock(daemon->config, why));
  /* Last: the sandbox denies what the steps above need. No other thread may run yet. */
  CV_TRY(enter_sandbox(daemon, why));
  CV_TRY(cv_loop_start_threads(&daemon->loop, why));
  return audit_start(daemon, why);
}

static void say_ready(struct cv_daemon *daemon) {
  daemon->started = true;
  cv_watchdog_start(&daemon->watchdog, cv_notify_watchdog_ms(), cv_clock_mono_ms());
  cv_notify_ready();
  say_port(daemon, daemon->config->stands_by ? "standing by" : "ready");
  cv_page_site_say(&daemon->page, stdout);
  (void)fflush(stdout);
}

static void fini(struct cv_daemon *daemon) {
  (void)uv_run(&daemon->loop, UV_RUN_DEFAULT);
  /* After the loop: no commit runs, and no callback can use the party any more. */
  audit_stop(daemon);
  daemon->ops->close(daemon->party);
  cv_signals_stop(&daemon->signals);
  if (uv_loop_close(&daemon->loop) != 0) {
    cv_log(CV_LOG_WARN, "the event loop did not close cleanly");
  }
  cv_lanes_fini(&daemon->lanes);
  cv_network_fini(&daemon->network);
  cv_trail_close(daemon->trail);
  cv_daemon_gauges_close(&daemon->gauges);
  cv_drbg_fini(&daemon->drbg);
  cv_db_on_step(NULL, NULL);
}

int cv_daemon_run(const struct cv_daemon_config *config) {
  struct cv_daemon daemon = {.config = config,
                             .ops = config->ops,
                             .party = config->party,
                             .network = {.config = config},
                             .page = {.socket = -1}};
  struct cv_why why = {.text = "out of memory"};
  /* Before a key is read: from here on no core dump and no swap can hold one. */
  cv_sandbox_begin(&config->settings->sandbox);
  const char *clock = config->settings->unsafe_clock; /* followed before a time is read */
  enum cv_err err = clock == NULL ? CV_OK : cv_clock_follow(clock, &why);
  if (cv_loop_open(&daemon.loop, &why) != CV_OK) {
    cv_log_early(config->program, CV_LOG_ERROR, "%s", why.text);
    return 1;
  }
  cv_drbg_init(&daemon.drbg);
  daemon.told_ms = cv_clock_mono_ms();
  cv_db_on_step(on_step, &daemon);
  cv_daemon_gauges_open(&daemon.gauges, config->program);
  turn_init(&daemon);
  daemon.lanes = (struct cv_lanes){.ops = &config->ops->lane,
                                   .party = config->party,
                                   .program = config->program,
                                   .dialled = cv_network_dialled(config),
                                   .fail = out_of_memory,
                                   .has_failed = has_failed,
                                   .note = cv_daemon_note,
                                   .data = &daemon};
  err = err == CV_OK ? start(&daemon, &why) : err;
  if (err != CV_OK) {
    cv_log_early(config->program, CV_LOG_ERROR, "%s", why.text);
    /* The loop has to close what the start has opened so far. */
    stop(&daemon);
    fini(&daemon);
    return cv_config_exit_status(err);
  }
  say_ready(&daemon);
  (void)uv_run(&daemon.loop, UV_RUN_DEFAULT);
  cv_log_suppressed(&daemon.log_limit, cv_clock_mono_ms(), true);
  if (config->ops->ended != NULL) {
    config->ops->ended(config->party);
  }
  /* A failed turn ends the loop like a signal does; only the exit status tells a supervisor to restart it. */
  int status = cv_turn_has_failed(&daemon.turn) ? 1 : 0;
  fini(&daemon);
  return status;
}
