/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowdveil-thirdparty: the shell around the core. One loop: frames of brokers go into the core, once a turn all that
 * changed goes to storage as one transaction, on another thread unless it is little, and when that has returned its
 * frames leave.
 *
 * What can fail: storage (one line, exit 1: a restart goes on from the last commit), memory (the same), a broker (its
 * connection closes). SIGTERM and SIGINT store what has been taken in, close and exit 0. SIGHUP reads the TLS files
 * again and keeps the old ones if the new ones are no good.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include <uv.h>

#include "common/admin/admin.h"
#include "common/admin/probe.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/config/link.h"
#include "common/crypto/crypto.h"
#include "common/daemon/turn.h"
#include "common/db/committer.h"
#include "common/net/peer.h"
#include "common/net/signals.h"
#include "common/sandbox/sandbox.h"
#include "proto/codec/rank.h"
#include "thirdparty/core.h"
#include "thirdparty/examine.h"
#include "thirdparty/store.h"

enum { BACKLOG_RELEASES = 16384, CROWD_RELEASES = 9, HUSH_MS = 1000 };

static const char program[] = "crowdveil-thirdparty";

struct settings {
  char *listen, *brokers, *state, *admin;
  struct cv_link_settings link;
  uint64_t campaigns, arms;
  struct cv_sandbox_settings sandbox;
  bool probe, examine;
};

static const struct cv_config_rule rules[] = {
    {.key = "listen",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct settings, listen),
     .fallback = "127.0.0.1:7402",
     .help = "HOST:PORT for brokers; port 0 lets the system choose"},
    {.key = "brokers",
     .type = CV_CONFIG_PARTIES,
     .offset = offsetof(struct settings, brokers),
     .required = true,
     .help = "whom it serves; others are refused"},
    {.key = "state",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, state),
     .required = true,
     .help = "folder of thirdparty.db; must exist"},
    CV_ADMIN_RULES(struct settings),
    CV_LINK_RULES(offsetof(struct settings, link)),
    {.key = "limits.campaigns",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, campaigns),
     .low = 1,
     .high = 1 << 20,
     .fallback = "256",
     .help = "open campaigns of one broker"},
    {.key = "limits.arms",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, arms),
     .low = 1,
     .high = CV_ARMS_MAX,
     .fallback = "4096",
     .help = "arms of one campaign"},
    CV_SANDBOX_RULES(offsetof(struct settings, sandbox)),
    {.key = "examine",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, examine),
     .fallback = "false",
     .is_option = true,
     .help = "examine the stopped third-party's state, print a line a finding, and exit"},
};

static const struct cv_config_table table = {.program = program,
                                             .about = "ranks what brokers release, and keeps its decisions",
                                             .rules = rules,
                                             .count = CV_COUNT(rules)};

struct daemon;

/* What a peer's data points to. Until a peer is open that is the daemon's `lobby`, which has no link. */
struct conn {
  struct conn *prev, *next;
  struct daemon *daemon;
  struct cv_peer *peer;
  struct cv_ranker_link *link;
};

struct daemon {
  uv_loop_t loop;
  uv_prepare_t prepare;
  struct cv_signals signals;
  uv_timer_t hush_timer;
  struct cv_hush hush;
  struct cv_refusals refusals; /* of the network; the core has its own */
  struct settings settings;
  struct cv_tls *tls;
  struct cv_listener *listener;
  struct cv_admin *admin;
  struct cv_drbg drbg;
  struct cv_ranker *ranker;
  struct cv_store *store;
  struct cv_committer committer;
  struct cv_turn turn;
  struct cv_batch batch; /* the one that is being stored */
  struct cv_arena decoding, encoding;
  struct cv_buf bytes;
  struct conn lobby, *conns;
  bool paused, draining, closing;
  uint64_t commits;
};

/* Nothing has been promised that is not stored, so giving up is safe at any point. */
static _Noreturn void give_up(const char *line) {
  cv_log(CV_LOG_ERROR, "%s", line);
  exit(1);
}

/* ---- what leaves ---- */

static void send_frame(struct daemon *daemon, const struct cv_ranker_out *out) {
  struct conn *conn = out->data;
  cv_buf_clear(&daemon->bytes);
  enum cv_err err = cv_rank_encode(out->frame, &daemon->encoding, &daemon->bytes);
  if (err == CV_OK) {
    err = cv_peer_send(conn->peer, daemon->bytes.data, daemon->bytes.len);
  }
  if (err == CV_ERR_LIMIT) {
    cv_refusals_add(&daemon->refusals, CV_REFUSED_DEAF);
    cv_peer_close(conn->peer, "it does not read what it is sent");
  } else if (err != CV_OK && err != CV_ERR_CLOSED) {
    give_up("a frame cannot be encoded: out of memory");
  } else if (out->close != NULL) {
    cv_peer_close(conn->peer, out->close);
  }
}

static void send_all(struct daemon *daemon) {
  struct cv_ranker_out out;
  while (cv_ranker_next(daemon->ranker, &out)) {
    send_frame(daemon, &out);
  }
}

static void set_paused(struct daemon *daemon, bool paused) {
  struct conn *conn;
  if (daemon->paused != paused) {
    daemon->paused = paused;
    DL_FOREACH(daemon->conns, conn) {
      if (paused) {
        cv_peer_pause(conn->peer);
      } else {
        cv_peer_resume(conn->peer);
      }
    }
  }
}

/* ---- the turn ---- */

static bool is_pending(void *data) {
  const struct daemon *daemon = data;
  return cv_ranker_has_work(daemon->ranker);
}

/* Who sends few releases waits for the plan that follows them. */
static size_t gathered(void *data) {
  const struct daemon *daemon = data;
  return cv_ranker_backlog(daemon->ranker);
}

static enum cv_err flush(void *data, bool *ret_store) {
  struct daemon *daemon = data;
  CV_TRY(cv_ranker_flush(daemon->ranker, &daemon->batch));
  *ret_store = daemon->batch.first != NULL;
  return CV_OK;
}

/* On the loop or on the storage thread. */
static enum cv_err commit(void *data, struct cv_why *why) {
  struct daemon *daemon = data;
  return cv_store_apply(daemon->store, &daemon->batch, why);
}

static enum cv_err commit_here(void *data, struct cv_why *why) {
  struct daemon *daemon = data;
  return cv_committer_run_here(&daemon->committer, why);
}

static void hand_over(void *data) {
  struct daemon *daemon = data;
  cv_committer_run(&daemon->committer);
}

static void committed(void *data, enum cv_err err, const struct cv_why *why) {
  struct daemon *daemon = data;
  cv_turn_committed(&daemon->turn, err, why);
}

static bool is_quick(void *data) {
  const struct daemon *daemon = data;
  return cv_committer_is_quick(&daemon->committer);
}

static void say(void *data) {
  struct daemon *daemon = data;
  daemon->commits += daemon->batch.first != NULL;
  cv_batch_fini(&daemon->batch);
  cv_ranker_committed(daemon->ranker);
  send_all(daemon);
  if (!daemon->draining) {
    set_paused(daemon, false);
  }
}

static void on_failure(void *data, const char *what, const struct cv_why *why) {
  cv_log(CV_LOG_ERROR, "%s: %s; stopping, nothing that was acknowledged is lost", what, why->text);
  exit(1);
}

static const struct cv_turn_ops turn_ops = {.is_pending = is_pending,
                                            .gathered = gathered,
                                            .flush = flush,
                                            .commit = commit_here,
                                            .hand_over = hand_over,
                                            .is_quick = is_quick,
                                            .say = say,
                                            .fail = on_failure};

static void close_handles(struct daemon *daemon) {
  uv_close((uv_handle_t *)&daemon->prepare, NULL);
  uv_close((uv_handle_t *)&daemon->hush_timer, NULL);
}

/* Everything is stored and sent: say so to the brokers and leave when they are gone. */
static void leave(struct daemon *daemon) {
  struct conn *conn;
  if (!daemon->closing) {
    daemon->closing = true;
    DL_FOREACH(daemon->conns, conn) {
      cv_peer_close(conn->peer, "shutting down");
    }
  }
  if (daemon->conns == NULL) {
    close_handles(daemon);
  }
}

/* Just before the loop waits: all that came in during this turn is one batch. */
static void on_turn(uv_prepare_t *handle) {
  struct daemon *daemon = handle->data;
  cv_turn_over(&daemon->turn);
  if (!cv_turn_is_busy(&daemon->turn)) {
    if (daemon->draining) {
      leave(daemon);
    }
  } else if (cv_ranker_backlog(daemon->ranker) > BACKLOG_RELEASES) {
    set_paused(daemon, true);
  }
}

/* ---- connections ---- */

static void note_peer(struct daemon *daemon, const struct cv_peer *peer, const char *line) {
  char who[CV_HUSH_PEER_BYTES];
  cv_peer_who(peer, who, sizeof(who));
  cv_log_peer(&daemon->hush, who, line, cv_clock_mono_ms());
}

static void on_opened(struct cv_peer *peer, const struct cv_identity *identity) {
  const struct conn *lobby = cv_peer_data(peer);
  struct daemon *daemon = lobby->daemon;
  struct conn *conn = calloc(1, sizeof(*conn));
  if (conn == NULL || cv_ranker_connected(daemon->ranker, identity->name, conn, &conn->link) != CV_OK) {
    give_up("out of memory");
  }
  conn->daemon = daemon;
  conn->peer = peer;
  DL_APPEND(daemon->conns, conn);
  cv_peer_set_data(peer, conn);
  if (daemon->paused) {
    cv_peer_pause(peer);
  }
  if (daemon->closing) {
    cv_peer_close(peer, "shutting down");
  }
  char line[CV_HUSH_TEXT_BYTES];
  (void)snprintf(line, sizeof(line), "connected from %s", cv_peer_address(peer));
  note_peer(daemon, peer, line);
}

static void on_frame(struct cv_peer *peer, const uint8_t *bytes, size_t n) {
  struct conn *conn = cv_peer_data(peer);
  struct daemon *daemon = conn->daemon;
  struct cv_rank_frame frame;
  enum cv_err err = cv_rank_decode(bytes, n, &daemon->decoding, &frame);
  if (err == CV_OK) {
    err = cv_ranker_frame(daemon->ranker, conn->link, &frame);
  } else if (err != CV_ERR_NOMEM) {
    char line[96];
    (void)snprintf(line, sizeof(line), "a frame of %zu bytes is not understood: %s", n, cv_err_text(err));
    cv_ranker_reject(daemon->ranker, conn->link, CV_REFUSED_MESSAGE, line);
    err = CV_OK;
  }
  if (err != CV_OK) {
    give_up("out of memory");
  }
}

static void on_closed(struct cv_peer *peer, const struct cv_why *why) {
  struct conn *conn = cv_peer_data(peer);
  struct daemon *daemon = conn->daemon;
  note_peer(daemon, peer, why->text);
  cv_refusals_add(&daemon->refusals, cv_peer_refusal(peer));
  if (conn->link != NULL) {
    cv_ranker_disconnected(daemon->ranker, conn->link);
    DL_DELETE(daemon->conns, conn);
    free(conn);
  }
}

static const struct cv_peer_ops peer_ops = {.opened = on_opened, .frame = on_frame, .closed = on_closed};

/* ---- signals ---- */

static void drain(struct daemon *daemon, int number) {
  if (daemon->draining) {
    return;
  }
  cv_log(CV_LOG_INFO, "stopping on signal %d", number);
  daemon->draining = true;
  set_paused(daemon, true);
  cv_listener_stop(daemon->listener);
  cv_admin_stop(daemon->admin);
  daemon->admin = NULL;
}

static struct cv_tls_files tls_files(const struct settings *settings) {
  return (struct cv_tls_files)CV_LINK_FILES(&settings->link);
}

static void reload(struct daemon *daemon) {
  const struct cv_tls_files files = tls_files(&daemon->settings);
  struct cv_tls *tls;
  struct cv_why why;
  if (daemon->draining) {
    return;
  }
  if (cv_tls_renew(daemon->tls, &files, &tls, &why) != CV_OK) {
    cv_log(CV_LOG_ERROR, "going on with the certificates as they were: %s", why.text);
    return;
  }
  cv_listener_set_tls(daemon->listener, tls);
  cv_tls_unref(daemon->tls);
  daemon->tls = tls;
  cv_log(CV_LOG_INFO, "certificates read again");
}

static void on_signal(void *data, int number) {
  if (number == SIGHUP) {
    reload(data);
  } else {
    drain(data, number);
  }
}

/* ---- the operator's window ---- */

static enum cv_err health(void *data, struct cv_why *why) {
  const struct daemon *daemon = data;
  return daemon->draining ? cv_fail(why, CV_ERR_STATE, "stopping") : CV_OK;
}

static void metrics(void *data, struct cv_buf *out) {
  const struct daemon *daemon = data;
  struct cv_ranker_counts counts;
  cv_ranker_count(daemon->ranker, &counts);
  cv_admin_metric(out, "crowdveil_thirdparty_brokers", "Connected brokers.", "gauge", (double)counts.brokers_connected);
  cv_admin_metric(out, "crowdveil_thirdparty_campaigns_open", "Campaigns that are not closed.", "gauge",
                  (double)counts.campaigns_open);
  cv_admin_metric(out, "crowdveil_thirdparty_campaigns_closed", "Campaigns whose result the broker has.", "gauge",
                  (double)counts.campaigns_closed);
  cv_admin_metric(out, "crowdveil_thirdparty_releases_total", "Releases applied since the start.", "counter",
                  (double)counts.releases);
  cv_admin_metric(out, "crowdveil_thirdparty_decisions_total", "Decisions made since the start.", "counter",
                  (double)counts.decisions);
  cv_admin_metric(out, "crowdveil_thirdparty_commits_total", "Transactions since the start.", "counter",
                  (double)daemon->commits);
  for (int i = 0; i < CV_REFUSALS; i++) {
    counts.refusals.count[i] += daemon->refusals.count[i];
  }
  cv_admin_refusals(out, &counts.refusals);
}

/* ---- start ---- */

static void on_note(void *data, const char *peer, const char *line) {
  struct daemon *daemon = data;
  if (peer == NULL) {
    cv_log(CV_LOG_INFO, "%s", line);
  } else {
    cv_log_peer(&daemon->hush, peer, line, cv_clock_mono_ms());
  }
}

static void on_hush(uv_timer_t *timer) {
  struct daemon *daemon = timer->data;
  cv_log_hushed(&daemon->hush, cv_clock_mono_ms(), false);
}

static enum cv_err restore(void *data, const struct cv_stored_campaign *stored, struct cv_why *why) {
  struct daemon *daemon = data;
  return cv_ranker_restore(daemon->ranker, stored, why);
}

static enum cv_err start_state(struct daemon *daemon, struct cv_why *why) {
  const struct cv_ranker_setup setup = {
      .digest = cv_sha256,
      .rng = &daemon->drbg.rng,
      .program = program,
      .note = on_note,
      .data = daemon,
      .limits = {.campaigns = (uint32_t)daemon->settings.campaigns,
                 .arms = (uint32_t)daemon->settings.arms,
                 .queued_wants = CV_RANKER_DEFAULTS.queued_wants},
  };
  char *path = NULL;
  if (cv_ranker_new(&setup, &daemon->ranker) != CV_OK || cv_arena_init(&daemon->decoding, CV_ARENA_BYTES) != CV_OK ||
      cv_arena_init(&daemon->encoding, CV_ARENA_BYTES) != CV_OK ||
      asprintf(&path, "%s/thirdparty.db", daemon->settings.state) < 0) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  enum cv_err err = cv_store_open(path, NULL, &daemon->store, why);
  if (err == CV_OK) {
    err = cv_store_load(daemon->store, restore, daemon, why);
    if (err != CV_OK) {
      cv_why_prefix(why, "%s", path);
    }
  }
  free(path);
  return err;
}

static void start_handles(struct daemon *daemon) {
  uv_loop_t *loop = &daemon->loop;
  cv_signals_start(&daemon->signals, loop, on_signal, daemon);
  (void)uv_timer_init(loop, &daemon->hush_timer);
  daemon->hush_timer.data = daemon;
  (void)uv_timer_start(&daemon->hush_timer, on_hush, HUSH_MS, HUSH_MS);
  /* The connections write in a prepare handle of their own; the one that was started last runs first. */
  (void)uv_prepare_init(loop, &daemon->prepare);
  daemon->prepare.data = daemon;
  (void)uv_prepare_start(&daemon->prepare, on_turn);
}

static enum cv_err start_network(struct daemon *daemon, struct cv_why *why) {
  const char *listen = daemon->settings.listen;
  const struct cv_tls_files files = tls_files(&daemon->settings);
  struct cv_net_limits limits = CV_NET_DEFAULTS;
  limits.silence_ms = (unsigned)daemon->settings.link.silence_ms;
  daemon->lobby.daemon = daemon;
  const struct cv_tls_peers brokers = {.roles = 1u << CV_ROLE_BROKER, .names = daemon->settings.brokers};
  CV_TRY(cv_tls_new(&files, CV_ROLE_THIRDPARTY, brokers, true, &daemon->tls, why));
  return cv_listener_start(&daemon->loop, listen, daemon->tls, &peer_ops, &daemon->lobby, &limits, &daemon->listener,
                           why);
}

static enum cv_err start_admin(struct daemon *daemon, struct cv_why *why) {
  static const struct cv_admin_ops ops = {.health = health, .metrics = metrics};
  const char *path = daemon->settings.admin;
  return path == NULL ? CV_OK : cv_admin_start(&daemon->loop, path, &ops, daemon, &daemon->admin, why);
}

/* Brokers dial; this party connects to nobody. */
static enum cv_err enter_sandbox(const struct settings *settings, struct cv_why *why) {
  const struct cv_sandbox_needs needs = {
      .reads = {settings->link.ca, settings->link.cert, settings->link.key, settings->link.denied},
      .state = settings->state,
      .socket = settings->admin};
  struct cv_sandbox_report report;
  CV_TRY(cv_sandbox_enter(&settings->sandbox, &needs, &report, why));
  cv_log(report.whole ? CV_LOG_INFO : CV_LOG_WARN, "sandbox: %s", report.text);
  return CV_OK;
}

/* The network first: a port that is taken or a bad certificate must not leave a new database behind. */
static enum cv_err start_all(struct daemon *daemon, struct cv_why *why) {
  CV_TRY(start_network(daemon, why));
  CV_TRY(cv_sandbox_become(&daemon->settings.sandbox, why));
  CV_TRY(start_state(daemon, why));
  CV_TRY(start_admin(daemon, why));
  return enter_sandbox(&daemon->settings, why);
}

static void say_ready(const struct daemon *daemon) {
  const char *listen = daemon->settings.listen, *colon = strrchr(listen, ':');
  int host = colon != NULL ? (int)(colon - listen) : (int)strlen(listen);
  (void)printf("%s ready on %.*s:%u\n", program, host, listen, cv_listener_port(daemon->listener));
  (void)fflush(stdout);
}

static void stop(struct daemon *daemon) {
  cv_ranker_free(daemon->ranker);
  cv_store_close(daemon->store);
  cv_signals_stop(&daemon->signals);
  (void)uv_loop_close(&daemon->loop);
  if (daemon->tls != NULL) {
    cv_tls_unref(daemon->tls);
  }
  cv_arena_fini(&daemon->decoding);
  cv_arena_fini(&daemon->encoding);
  cv_buf_fini(&daemon->bytes);
  cv_drbg_fini(&daemon->drbg);
  cv_config_fini(&table, &daemon->settings);
}

/* What comes before running, or is asked for instead: the exit status, or -1 to go on. */
static int prepare(const struct settings *settings) {
  const struct cv_thirdparty_files files = {.state = settings->state, .admin = settings->admin};
  return settings->probe     ? cv_probe_run(program, settings->admin)
         : settings->examine ? cv_thirdparty_examine(&files)
                             : cv_link_wait(program, &settings->link);
}

int main(int argc, char **argv) {
  static struct daemon daemon;
  struct cv_why why = {.text = ""};
  cv_log_init(program, CV_LOG_INFO);
  int status = cv_config_start(&table, argc, argv, &daemon.settings);
  if (status < 0) {
    status = prepare(&daemon.settings);
  }
  if (status >= 0) {
    cv_config_fini(&table, &daemon.settings);
    return status;
  }
  cv_sandbox_begin(&daemon.settings.sandbox);
  (void)signal(SIGPIPE, SIG_IGN);
  if (uv_loop_init(&daemon.loop) != 0) {
    give_up("the event loop cannot be made");
  }
  cv_drbg_init(&daemon.drbg);
  daemon.committer = (struct cv_committer){.loop = &daemon.loop, .commit = commit, .done = committed, .data = &daemon};
  daemon.turn = (struct cv_turn){.ops = &turn_ops, .data = &daemon, .crowd = CROWD_RELEASES};
  enum cv_err err = start_all(&daemon, &why);
  if (err != CV_OK) {
    cv_log(CV_LOG_ERROR, "%s", why.text);
    return cv_config_exit_status(err);
  }
  start_handles(&daemon);
  say_ready(&daemon);
  (void)uv_run(&daemon.loop, UV_RUN_DEFAULT);
  stop(&daemon);
  cv_log_hushed(&daemon.hush, cv_clock_mono_ms(), true);
  cv_log(CV_LOG_INFO, "stopped");
  return 0;
}
