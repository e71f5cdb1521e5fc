/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/shell.h"

#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/admin/admin.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/daemon/turn.h"
#include "common/db/committer.h"
#include "common/net/peer.h"
#include "common/net/signals.h"

enum {
  TICK_MS = 50,
  PACE_MS = 1,       /* from a batch of a crowd to the next one, unless BATCH_TOKENS wait */
  CROWD_TOKENS = 32, /* fewer in a batch: somebody waits for it, and nothing is won by gathering */
  BATCH_TOKENS = 1024,
  SLICE = 1000, /* assignments and acknowledgements in one frame */
  SLICE_SMALL = 16,
  FETCH_REST = 4,       /* after a campaign has been read, this many times as long none is */
  HOLD_BYTES = 1 << 20, /* queued for a connection: it is slow to read */
};

/* What a peer's data points to. Peers that have not introduced themselves share the shell's newcomer. */
struct link {
  struct cv_broker_shell *shell;
  struct cv_peer *peer;
  struct cv_broker_conn *conn;
  enum cv_schema schema;
  bool closing;
  bool paused;             /* until the next flush: it has had its share of answers */
  bool held;               /* until it has read */
  struct link *next, **at; /* list of all but the newcomer */
};

struct cv_broker_shell {
  const struct cv_broker_settings *settings;
  uv_loop_t loop;
  struct cv_broker *core;
  struct cv_broker_store *store;
  struct cv_committer committer;
  struct cv_turn turn;
  struct cv_batch batch;
  struct cv_mac *mac;
  struct cv_drbg drbg;
  struct cv_tls *server_tls, *client_tls;
  struct cv_listener *listener;
  struct cv_dialer *dialer;
  struct cv_admin *admin;
  struct link newcomer;
  struct link *links;
  struct cv_arena in, scratch;
  struct cv_buf out;
  uv_check_t check;
  uv_timer_t tick, pace;
  struct cv_signals signals;
  bool draining, stopping;
  unsigned pauses;
  uint64_t drain_until_ms;
  uint64_t fetch_from_ms; /* no campaign is read before that */
  struct cv_hush hush;
  struct cv_refusals refusals; /* of the network and of frames; the core has its own */
  char address[128];
};

/* ---- log ---- */

static void note(void *data, const char *peer, const char *text) {
  struct cv_broker_shell *shell = data;
  if (peer == NULL) {
    cv_log(CV_LOG_INFO, "%s", text);
  } else {
    cv_log_peer(&shell->hush, peer, text, cv_clock_mono_ms());
  }
}

static void note_peer(struct cv_broker_shell *shell, const struct cv_peer *peer, const char *text) {
  char who[CV_HUSH_PEER_BYTES];
  cv_peer_who(peer, who, sizeof(who));
  note(shell, who, text);
}

/* ---- from core to peers ---- */

static void close_link(struct link *link, const char *why) {
  if (!link->closing) {
    link->closing = true;
    cv_peer_close(link->peer, why);
  }
}

static void send_bytes(struct link *link, enum cv_err err) {
  struct cv_buf *out = &link->shell->out;
  if (err == CV_OK) {
    err = cv_peer_send(link->peer, out->data, out->len);
  }
  if (err == CV_ERR_LIMIT) {
    cv_refusals_add(&link->shell->refusals, CV_REFUSED_DEAF);
    close_link(link, "it does not read what it is sent");
  } else if (err != CV_OK && err != CV_ERR_CLOSED) {
    close_link(link, cv_err_text(err));
  }
  cv_buf_clear(out);
}

/* Who reads slowly is told less, before the queue is full. */
static void hold(struct link *link) {
  size_t queued = cv_peer_queued(link->peer);
  bool held = link->held ? queued > HOLD_BYTES / 2 : queued > HOLD_BYTES;
  if (held != link->held && link->conn != NULL && !link->closing) {
    link->held = held;
    cv_broker_hold(link->shell->core, link->conn, held);
  }
}

static void send_crowd(struct link *link, const struct cv_crowd_frame *frame) {
  send_bytes(link, cv_crowd_encode(frame, &link->shell->scratch, &link->shell->out));
}

static size_t slice(size_t *left, size_t most) {
  size_t n = *left < most ? *left : most;
  *left -= n;
  return n;
}

/* Cuts what a connection is told into frames that fit; terms go before the assignments that rest on them. */
static void send_sliced(struct link *link, const struct cv_crowd_frame *whole) {
  struct cv_crowd_frame rest = *whole;
  rest.hello.present = false;
  bool first = true;
  do {
    struct cv_crowd_frame part = {.hello = first ? whole->hello : (struct cv_hello){0}};
    part.campaign = rest.campaign;
    part.campaigns = slice(&rest.campaigns, SLICE_SMALL);
    rest.campaign += part.campaigns;
    if (rest.campaigns == 0) {
      part.ack = rest.ack;
      part.acks = slice(&rest.acks, SLICE);
      rest.ack += part.acks;
      part.assign = rest.assign;
      part.assigns = slice(&rest.assigns, SLICE);
      rest.assign += part.assigns;
      part.backoff = rest.backoff;
      part.backoffs = slice(&rest.backoffs, SLICE_SMALL);
      rest.backoff += part.backoffs;
      part.done = rest.done;
      part.dones = slice(&rest.dones, SLICE);
      rest.done += part.dones;
    }
    if (rest.campaigns + rest.acks + rest.assigns + rest.backoffs + rest.dones == 0) {
      part.goodbye = rest.goodbye;
      rest.goodbye = NULL;
    }
    send_crowd(link, &part);
    first = false;
  } while (!link->closing &&
           (rest.campaigns + rest.acks + rest.assigns + rest.backoffs + rest.dones > 0 || rest.goodbye != NULL));
}

static void deliver(struct cv_broker_shell *shell) {
  struct cv_broker_out out;
  while (cv_broker_next_out(shell->core, &out)) {
    struct link *link = cv_broker_conn_shell(out.conn);
    if (link->closing) {
      continue;
    }
    switch (out.schema) {
      case CV_SCHEMA_CROWD:
        send_sliced(link, out.frame.crowd);
        break;
      case CV_SCHEMA_RANK:
        send_bytes(link, cv_rank_encode(out.frame.rank, &shell->scratch, &shell->out));
        break;
      case CV_SCHEMA_ORDER:
        send_bytes(link, cv_order_encode(out.frame.order, &shell->scratch, &shell->out));
        break;
    }
    hold(link);
    if (out.close) {
      close_link(link, "told to go");
    }
  }
}

/* What was gathered has gone into a batch: everybody may speak again. */
static void resume_all(struct cv_broker_shell *shell) {
  for (struct link *link = shell->pauses > 0 ? shell->links : NULL; link != NULL; link = link->next) {
    if (link->paused) {
      link->paused = false;
      cv_peer_resume(link->peer);
    }
  }
  shell->pauses = 0;
}

/* ---- the turn ---- */

static bool is_pending(void *data) {
  const struct cv_broker_shell *shell = data;
  return cv_broker_is_pending(shell->core);
}

static size_t gathered(void *data) {
  const struct cv_broker_shell *shell = data;
  return cv_broker_gathered(shell->core);
}

static enum cv_err flush(void *data, bool *ret_store) {
  struct cv_broker_shell *shell = data;
  CV_TRY(cv_broker_flush(shell->core, cv_clock_mono_ms(), cv_clock_wall_ms(), &shell->batch, ret_store));
  resume_all(shell);
  return CV_OK;
}

/* On the loop or on the storage thread. */
static enum cv_err commit(void *data, struct cv_why *why) {
  struct cv_broker_shell *shell = data;
  return cv_broker_store_commit(shell->store, &shell->batch, why);
}

static enum cv_err commit_here(void *data, struct cv_why *why) {
  struct cv_broker_shell *shell = data;
  return cv_committer_run_here(&shell->committer, why);
}

static void hand_over(void *data) {
  struct cv_broker_shell *shell = data;
  cv_committer_run(&shell->committer);
}

static void committed(void *data, enum cv_err err, const struct cv_why *why) {
  struct cv_broker_shell *shell = data;
  cv_turn_committed(&shell->turn, err, why);
}

static bool is_quick(void *data) {
  const struct cv_broker_shell *shell = data;
  return cv_committer_is_quick(&shell->committer);
}

static void say(void *data) {
  struct cv_broker_shell *shell = data;
  cv_broker_stored(shell->core);
  deliver(shell);
}

static void on_pace(uv_timer_t *timer) {
  struct cv_broker_shell *shell = timer->data;
  cv_turn_paced(&shell->turn);
}

static void pace(void *data) {
  struct cv_broker_shell *shell = data;
  (void)uv_timer_start(&shell->pace, on_pace, PACE_MS, 0);
}

/* Reads a campaign that has ended, for whoever asks: one at a time, and for a small part of the loop's time. */
static void fetch(void *data) {
  struct cv_broker_shell *shell = data;
  struct cv_why why;
  uint64_t began_ms = cv_clock_mono_ms();
  if (began_ms >= shell->fetch_from_ms && cv_broker_store_serve(shell->store, shell->core, &why) != CV_OK) {
    cv_turn_fail(&shell->turn, "cannot read", &why);
  }
  uint64_t took_ms = cv_clock_mono_ms() - began_ms;
  shell->fetch_from_ms = took_ms > 0 ? began_ms + took_ms + FETCH_REST * took_ms : shell->fetch_from_ms;
}

static void on_failure(void *data, const char *what, const struct cv_why *why) {
  struct cv_broker_shell *shell = data;
  cv_log(CV_LOG_ERROR, "%s: %s; stopping, nothing that was acknowledged is lost", what, why->text);
  uv_stop(&shell->loop);
}

static bool has_rest(void *data) {
  const struct cv_broker_shell *shell = data;
  return cv_broker_is_unserved(shell->core);
}

static const struct cv_turn_ops turn_ops = {.between = fetch,
                                            .is_pending = is_pending,
                                            .has_rest = has_rest,
                                            .gathered = gathered,
                                            .flush = flush,
                                            .commit = commit_here,
                                            .hand_over = hand_over,
                                            .is_quick = is_quick,
                                            .say = say,
                                            .pace = pace,
                                            .fail = on_failure};

static void on_turn(uv_check_t *check) {
  struct cv_broker_shell *shell = check->data;
  cv_turn_over(&shell->turn);
}

/* ---- from peers to core ---- */

static bool is_crowd(enum cv_role role) {
  return role == CV_ROLE_WORKER || role == CV_ROLE_GATEWAY;
}

/* Tells the peer why, in its own schema, and closes. */
static void reject(struct link *link, enum cv_refusal kind, const struct cv_why *why) {
  char goodbye[CV_WHY_BYTES];
  cv_refusals_add(&link->shell->refusals, kind);
  (void)snprintf(goodbye, sizeof(goodbye), "%.*s", CV_WHY_BYTES - 1, why->text);
  const struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION, .program = "crowdveil-broker"};
  if (link->schema == CV_SCHEMA_CROWD) {
    const struct cv_crowd_frame frame = {.hello = hello, .goodbye = goodbye};
    send_crowd(link, &frame);
  } else if (link->schema == CV_SCHEMA_RANK) {
    const struct cv_rank_frame frame = {.goodbye = goodbye};
    send_bytes(link, cv_rank_encode(&frame, &link->shell->scratch, &link->shell->out));
  } else {
    const struct cv_order_frame frame = {.hello = hello, .goodbye = goodbye};
    send_bytes(link, cv_order_encode(&frame, &link->shell->scratch, &link->shell->out));
  }
  close_link(link, why->text);
}

static void on_opened(struct cv_peer *peer, const struct cv_identity *identity) {
  struct cv_broker_shell *shell = ((struct link *)cv_peer_data(peer))->shell;
  struct link *link = calloc(1, sizeof(*link));
  if (link == NULL) {
    cv_peer_close(peer, "out of memory");
    return;
  }
  *link = (struct link){.shell = shell, .peer = peer, .next = shell->links, .at = &shell->links};
  if (link->next != NULL) {
    link->next->at = &link->next;
  }
  shell->links = link;
  link->schema = identity->role == CV_ROLE_THIRDPARTY ? CV_SCHEMA_RANK
                 : is_crowd(identity->role)           ? CV_SCHEMA_CROWD
                                                      : CV_SCHEMA_ORDER;
  cv_peer_set_data(peer, link);
  struct cv_why why;
  enum cv_err err = cv_broker_join(shell->core, identity, link, &link->conn, &why);
  if (err == CV_ERR_NOMEM) {
    cv_turn_fail(&shell->turn, "cannot go on", &why);
    return;
  }
  if (err != CV_OK) {
    reject(link, cv_refusal_of(err), &why);
    return;
  }
  (void)snprintf(why.text, sizeof(why.text), "connected from %s", cv_peer_address(peer));
  note_peer(shell, peer, why.text);
}

/* *ret_kind: as what an error is counted. */
static enum cv_err take_frame(struct link *link, const uint8_t *bytes, size_t n, enum cv_refusal *ret_kind,
                              struct cv_why *why) {
  struct cv_broker_shell *shell = link->shell;
  uint64_t now_ms = cv_clock_mono_ms();
  uint64_t wall_ms = cv_clock_wall_ms();
  union {
    struct cv_crowd_frame crowd;
    struct cv_rank_frame rank;
    struct cv_order_frame order;
  } frame;
  enum cv_err err;
  switch (link->schema) {
    case CV_SCHEMA_CROWD:
      err = cv_crowd_decode(bytes, n, &shell->in, &frame.crowd);
      break;
    case CV_SCHEMA_RANK:
      err = cv_rank_decode(bytes, n, &shell->in, &frame.rank);
      break;
    default:
      err = cv_order_decode(bytes, n, &shell->in, &frame.order);
      break;
  }
  if (err != CV_OK) {
    *ret_kind = CV_REFUSED_MESSAGE;
    return cv_fail(why, err, "a frame of %zu bytes is %s", n,
                   err == CV_ERR_LIMIT ? "over the decoder's memory" : "no valid message of its role");
  }
  switch (link->schema) {
    case CV_SCHEMA_CROWD:
      err = cv_broker_on_crowd(shell->core, link->conn, &frame.crowd, now_ms, wall_ms, why);
      break;
    case CV_SCHEMA_RANK:
      err = cv_broker_on_rank(shell->core, link->conn, &frame.rank, now_ms, why);
      break;
    default:
      err = cv_broker_on_order(shell->core, link->conn, &frame.order, now_ms, wall_ms, why);
      break;
  }
  *ret_kind = cv_refusal_of(err);
  return err;
}

/* A peer that sends while the last batch is being stored fills our memory with answers: each has its share of that. */
static void pace_peer(struct link *link) {
  if (!link->paused && !link->closing && cv_broker_conn_is_sated(link->shell->core, link->conn)) {
    link->paused = true;
    link->shell->pauses++;
    cv_peer_pause(link->peer);
  }
}

static void on_frame(struct cv_peer *peer, const uint8_t *bytes, size_t n) {
  struct link *link = cv_peer_data(peer);
  if (link->conn == NULL || link->closing || cv_turn_has_failed(&link->shell->turn)) {
    return;
  }
  struct cv_why why;
  enum cv_refusal kind = CV_REFUSALS;
  enum cv_err err = take_frame(link, bytes, n, &kind, &why);
  if (err == CV_ERR_NOMEM) {
    cv_turn_fail(&link->shell->turn, "cannot go on", &why);
  } else if (err != CV_OK) {
    reject(link, kind, &why);
  }
  pace_peer(link);
}

static void on_closed(struct cv_peer *peer, const struct cv_why *why) {
  struct link *link = cv_peer_data(peer);
  note_peer(link->shell, peer, why->text);
  cv_refusals_add(&link->shell->refusals, cv_peer_refusal(peer));
  if (link == &link->shell->newcomer) {
    return;
  }
  if (link->conn != NULL) {
    cv_broker_leave(link->shell->core, link->conn);
  }
  *link->at = link->next;
  if (link->next != NULL) {
    link->next->at = link->at;
  }
  free(link);
}

static const struct cv_peer_ops peer_ops = {.opened = on_opened, .frame = on_frame, .closed = on_closed};

static void on_dial_failed(void *data, const struct cv_why *why) {
  struct link *newcomer = data;
  note(newcomer->shell, "third-party", why->text);
}

/* ---- time and signals ---- */

static void stop_all(struct cv_broker_shell *shell) {
  if (shell->stopping) {
    return;
  }
  shell->stopping = true;
  cv_listener_stop(shell->listener);
  cv_dialer_stop(shell->dialer);
  shell->listener = NULL;
  shell->dialer = NULL;
  uv_stop(&shell->loop);
}

static void on_tick(uv_timer_t *timer) {
  struct cv_broker_shell *shell = timer->data;
  uint64_t now_ms = cv_clock_mono_ms();
  cv_broker_tick(shell->core, now_ms, cv_clock_wall_ms());
  cv_log_hushed(&shell->hush, now_ms, false);
  for (struct link *link = shell->links; link != NULL; link = link->next) {
    hold(link);
  }
  if (shell->draining && !cv_turn_is_busy(&shell->turn) &&
      (cv_broker_is_drained(shell->core) || now_ms >= shell->drain_until_ms)) {
    stop_all(shell);
  }
}

static struct cv_tls_files tls_files(const struct cv_broker_settings *settings) {
  return (struct cv_tls_files)CV_LINK_FILES(&settings->link);
}

static enum cv_err load_tls(struct cv_broker_shell *shell, struct cv_why *why) {
  const struct cv_tls_files files = tls_files(shell->settings);
  const struct cv_tls_peers clients = {.roles = 1U << CV_ROLE_WORKER | 1U << CV_ROLE_GATEWAY | 1U << CV_ROLE_REQUESTER};
  const struct cv_tls_peers thirdparty = {.roles = 1U << CV_ROLE_THIRDPARTY, .names = shell->settings->thirdparty_name};
  CV_TRY(cv_tls_new(&files, CV_ROLE_BROKER, clients, true, &shell->server_tls, why));
  return cv_tls_new(&files, CV_ROLE_BROKER, thirdparty, false, &shell->client_tls, why);
}

static void reload(struct cv_broker_shell *shell) {
  const struct cv_tls_files files = tls_files(shell->settings);
  struct cv_tls *server = NULL, *client = NULL;
  struct cv_why why;
  if (cv_tls_renew(shell->server_tls, &files, &server, &why) != CV_OK ||
      cv_tls_renew(shell->client_tls, &files, &client, &why) != CV_OK) {
    cv_tls_unref(server);
    cv_log(CV_LOG_ERROR, "going on with the certificates as they were: %s", why.text);
    return;
  }
  cv_listener_set_tls(shell->listener, server);
  cv_dialer_set_tls(shell->dialer, client);
  cv_tls_unref(shell->server_tls);
  cv_tls_unref(shell->client_tls);
  shell->server_tls = server;
  shell->client_tls = client;
  cv_log(CV_LOG_INFO, "certificates read again");
}

static void on_signal(void *data, int number) {
  struct cv_broker_shell *shell = data;
  if (number == SIGHUP) {
    if (!shell->stopping) {
      reload(shell);
    }
    return;
  }
  if (shell->draining) {
    stop_all(shell); /* asked twice */
    return;
  }
  shell->draining = true;
  shell->drain_until_ms = cv_clock_mono_ms() + shell->settings->lease_ms;
  cv_broker_drain(shell->core);
  cv_log(CV_LOG_INFO, "draining");
}

/* ---- admin ---- */

static enum cv_err health(void *data, struct cv_why *why) {
  struct cv_broker_shell *shell = data;
  struct cv_broker_figures figures;
  cv_broker_figures(shell->core, &figures);
  if (shell->draining) {
    return cv_fail(why, CV_ERR_STATE, "draining");
  }
  return figures.thirdparty ? CV_OK : cv_fail(why, CV_ERR_STATE, "the third-party is not connected");
}

static void metrics(void *data, struct cv_buf *out) {
  struct cv_broker_shell *shell = data;
  struct cv_broker_figures f;
  cv_broker_figures(shell->core, &f);
  cv_admin_metric(out, "crowdveil_tokens_total", "Tokens accepted.", "counter", (double)f.tokens);
  cv_admin_metric(out, "crowdveil_tokens_duplicate_total", "Tokens sent again.", "counter", (double)f.duplicates);
  cv_admin_metric(out, "crowdveil_tokens_expired_total", "Tokens that came too late.", "counter", (double)f.expired);
  cv_admin_metric(out, "crowdveil_tokens_refused_total", "Tokens refused.", "counter", (double)f.refused);
  cv_admin_metric(out, "crowdveil_releases_total", "Noisy sums released.", "counter", (double)f.releases);
  cv_admin_metric(out, "crowdveil_plans_total", "Plans accepted.", "counter", (double)f.plans);
  cv_admin_metric(out, "crowdveil_commits_total", "Commits.", "counter", (double)f.commits);
  cv_admin_metric(out, "crowdveil_worker_connections", "Workers and gateways connected.", "gauge", f.crowd_conns);
  cv_admin_metric(out, "crowdveil_campaigns_open", "Campaigns without a result.", "gauge", f.campaigns_open);
  cv_admin_metric(out, "crowdveil_campaigns_kept", "Campaigns that have ended and are known.", "gauge",
                  f.campaigns_kept);
  cv_admin_metric(out, "crowdveil_thirdparty_connected", "1 if the third-party is connected.", "gauge", f.thirdparty);
  for (int i = 0; i < CV_REFUSALS; i++) {
    f.refusals.count[i] += shell->refusals.count[i];
  }
  cv_admin_refusals(out, &f.refusals);
}

/* ---- start and end ---- */

static enum cv_err tag(void *data, const void *bytes, size_t bytes_n, uint8_t *to, size_t n) {
  return cv_mac_tag(data, bytes, bytes_n, to, n);
}

static enum cv_err open_keys(struct cv_broker_shell *shell, const char *database, struct cv_key *ret_master,
                             struct cv_why *why) {
  const char *path = shell->settings->seal_key;
  struct stat info;
  if (stat(path, &info) != 0 && !cv_broker_store_exists(database)) {
    CV_TRY(cv_key_create(path, ret_master, why));
  } else {
    CV_TRY(cv_key_read(path, ret_master, why));
  }
  return CV_OK;
}

/* Tickets are good for one database: in another the same place is another place. */
static enum cv_err open_tickets(struct cv_broker_shell *shell, const struct cv_key *master) {
  struct cv_key tickets;
  CV_TRY(cv_key_derive(master, "crowdveil tickets", cv_broker_store_number(shell->store), &tickets));
  enum cv_err err = cv_mac_new(&tickets, &shell->mac);
  cv_key_wipe(&tickets);
  return err;
}

struct cv_broker_limits cv_broker_settings_limits(const struct cv_broker_settings *settings) {
  return (struct cv_broker_limits){.epsilon_micro = settings->limit_epsilon_micro,
                                   .delta_pico = (uint64_t)llround(settings->limit_delta * (double)CV_PICO),
                                   .worker_epsilon_micro = settings->limit_worker_epsilon_micro,
                                   .release_tokens = (uint32_t)settings->limit_release_tokens,
                                   .arms = (uint32_t)settings->limit_arms,
                                   .campaigns = (uint32_t)settings->limit_campaigns,
                                   .submits = (uint32_t)settings->limit_submits,
                                   .kept = (uint32_t)settings->limit_kept,
                                   .retention_ms = settings->limit_retention_ms,
                                   .tokens = settings->limit_tokens,
                                   .chunks = (uint32_t)settings->limit_chunks,
                                   .lease_ms = (uint32_t)settings->lease_ms,
                                   .queue = (uint32_t)settings->limit_queue,
                                   .trusted_thirdparty = settings->trusted_thirdparty,
                                   .unsafe_mechanisms = settings->unsafe_mechanisms};
}

static enum cv_err open_core(struct cv_broker_shell *shell, struct cv_why *why) {
  const struct cv_broker_settings *settings = shell->settings;
  struct cv_broker_config config = {
      .limits = cv_broker_settings_limits(settings),
      .tagger = {.tag = tag, .data = shell->mac},
      .digest = cv_sha256,
      .noise = &shell->drbg.rng,
      .noise_seeded = settings->noise_seeded,
      .noise_seed = settings->noise_seed,
      .note = note,
      .note_data = shell,
  };
  (void)snprintf(config.name, sizeof(config.name), "%s", cv_tls_identity(shell->server_tls)->name);
  return cv_broker_new(&config, &shell->core);
}

/* Whether a file, which need not be there, is below a folder, whatever leads to it. */
static bool lies_in(const char *file, const char *folder) {
  char copy[PATH_MAX], inner[PATH_MAX], outer[PATH_MAX];
  if (snprintf(copy, sizeof(copy), "%s", file) >= (int)sizeof(copy) || realpath(dirname(copy), inner) == NULL ||
      realpath(folder, outer) == NULL) {
    return false;
  }
  size_t n = strlen(outer);
  return strncmp(inner, outer, n) == 0 && (inner[n] == '/' || inner[n] == '\0' || n == 1);
}

/* With the state folder an older anchor would come back, and the key would go wherever the sealed sums go. */
static enum cv_err keep_apart(const struct cv_broker_settings *settings, struct cv_why *why) {
  const struct { const char *key, *file; } apart[] = {{"anchor", settings->anchor}, {"seal_key", settings->seal_key}};
  for (size_t i = 0; i < CV_COUNT(apart); i++) {
    if (lies_in(apart[i].file, settings->state)) {
      return cv_fail(why, CV_ERR_INVALID, "%s: %s lies in state, %s; expected a file outside", apart[i].key,
                     apart[i].file, settings->state);
    }
  }
  return CV_OK;
}

static enum cv_err open_store(struct cv_broker_shell *shell, struct cv_why *why) {
  const struct cv_broker_settings *settings = shell->settings;
  char database[4096];
  if (snprintf(database, sizeof(database), "%s/broker.db", settings->state) >= (int)sizeof(database)) {
    return cv_fail(why, CV_ERR_INVALID, "state: the path is too long");
  }
  struct stat info;
  if (stat(settings->state, &info) != 0 || !S_ISDIR(info.st_mode)) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "state: %s is no folder; expected one that exists", settings->state);
  }
  CV_TRY(keep_apart(settings, why));
  struct cv_key master;
  CV_TRY(open_keys(shell, database, &master, why));
  const struct cv_broker_store_files files = {.database = database, .anchor = settings->anchor};
  enum cv_err err = cv_broker_store_open(&files, &master, &shell->store, why);
  if (err == CV_OK) {
    err = open_tickets(shell, &master);
  }
  cv_key_wipe(&master);
  CV_TRY(err);
  CV_TRY(open_core(shell, why));
  return cv_broker_store_load(shell->store, shell->core, cv_clock_mono_ms(), cv_clock_wall_ms(), why);
}

static enum cv_err open_net(struct cv_broker_shell *shell, struct cv_why *why) {
  const struct cv_broker_settings *settings = shell->settings;
  struct cv_net_limits limits = CV_NET_DEFAULTS;
  limits.connections = (unsigned)settings->connections;
  limits.handshakes = (unsigned)settings->handshakes;
  limits.hellos = (unsigned)settings->hellos;
  limits.silence_ms = (unsigned)settings->link.silence_ms;
  CV_TRY(cv_listener_start(&shell->loop, settings->listen, shell->server_tls, &peer_ops, &shell->newcomer, &limits,
                           &shell->listener, why));
  const char *colon = strrchr(settings->listen, ':');
  (void)snprintf(shell->address, sizeof(shell->address), "%.*s:%u", (int)(colon - settings->listen), settings->listen,
                 cv_listener_port(shell->listener));
  return cv_dialer_start(&shell->loop, settings->thirdparty, shell->client_tls, &peer_ops, &shell->newcomer,
                         on_dial_failed, &limits, cv_rng_u64(&shell->drbg.rng), &shell->dialer, why);
}

static void start_handles(struct cv_broker_shell *shell) {
  (void)uv_check_init(&shell->loop, &shell->check);
  (void)uv_timer_init(&shell->loop, &shell->tick);
  (void)uv_timer_init(&shell->loop, &shell->pace);
  shell->check.data = shell->tick.data = shell->pace.data = shell;
  (void)uv_check_start(&shell->check, on_turn);
  (void)uv_timer_start(&shell->tick, on_tick, TICK_MS, TICK_MS);
  cv_signals_start(&shell->signals, &shell->loop, on_signal, shell);
}

/* Keys, anchor and dialled name are behind us or in hand; certificates are read again on SIGHUP. */
static enum cv_err enter_sandbox(const struct cv_broker_settings *settings, struct cv_why *why) {
  const struct cv_sandbox_needs needs = {
      .reads = {settings->link.ca, settings->link.cert, settings->link.key, settings->link.denied},
      .state = settings->state,
      .socket = settings->admin,
      .dials = settings->thirdparty,
  };
  struct cv_sandbox_report report;
  CV_TRY(cv_sandbox_enter(&settings->sandbox, &needs, &report, why));
  cv_log(report.whole ? CV_LOG_INFO : CV_LOG_WARN, "sandbox: %s", report.text);
  return CV_OK;
}

static enum cv_err open_all(struct cv_broker_shell *shell, struct cv_why *why) {
  CV_TRY(load_tls(shell, why));
  CV_TRY(cv_arena_init(&shell->in, CV_ARENA_BYTES));
  CV_TRY(cv_arena_init(&shell->scratch, CV_ARENA_BYTES));
  CV_TRY(open_net(shell, why)); /* before the store: a port that is taken must not leave a new database behind */
  CV_TRY(cv_sandbox_become(&shell->settings->sandbox, why));
  CV_TRY(open_store(shell, why));
  start_handles(shell);
  if (shell->settings->admin != NULL) {
    const struct cv_admin_ops ops = {.health = health, .metrics = metrics};
    CV_TRY(cv_admin_start(&shell->loop, shell->settings->admin, &ops, shell, &shell->admin, why));
  }
  return enter_sandbox(shell->settings, why);
}

enum cv_err cv_broker_shell_start(const struct cv_broker_settings *settings, struct cv_broker_shell **ret,
                                  struct cv_why *why) {
  (void)cv_fail(why, CV_OK, "out of memory");
  struct cv_broker_shell *shell = calloc(1, sizeof(*shell));
  if (shell == NULL) {
    return CV_ERR_NOMEM;
  }
  shell->settings = settings;
  shell->newcomer.shell = shell;
  if (uv_loop_init(&shell->loop) != 0) {
    free(shell);
    return cv_fail(why, CV_ERR_IO, "the event loop cannot start");
  }
  cv_drbg_init(&shell->drbg);
  shell->committer = (struct cv_committer){.loop = &shell->loop, .commit = commit, .done = committed, .data = shell};
  shell->turn = (struct cv_turn){.ops = &turn_ops, .data = shell, .crowd = CROWD_TOKENS, .full = BATCH_TOKENS};
  enum cv_err err = open_all(shell, why);
  if (err != CV_OK) {
    cv_broker_shell_free(shell);
    return err;
  }
  *ret = shell;
  return CV_OK;
}

const char *cv_broker_shell_address(const struct cv_broker_shell *shell) {
  return shell->address;
}

int cv_broker_shell_run(struct cv_broker_shell *shell) {
  (void)uv_run(&shell->loop, UV_RUN_DEFAULT);
  cv_log_hushed(&shell->hush, cv_clock_mono_ms(), true);
  return cv_turn_has_failed(&shell->turn) ? 1 : 0;
}

static void close_handle(uv_handle_t *handle, void *data) {
  struct cv_broker_shell *shell = data;
  uv_handle_t *own[] = {(uv_handle_t *)&shell->check, (uv_handle_t *)&shell->tick, (uv_handle_t *)&shell->pace};
  for (size_t i = 0; i < CV_COUNT(own); i++) {
    if (handle == own[i] && !uv_is_closing(handle)) {
      uv_close(handle, NULL);
    }
  }
}

void cv_broker_shell_free(struct cv_broker_shell *shell) {
  if (shell == NULL) {
    return;
  }
  cv_listener_stop(shell->listener);
  cv_dialer_stop(shell->dialer);
  cv_admin_stop(shell->admin);
  for (struct link *link = shell->links; link != NULL; link = link->next) {
    close_link(link, "the broker stops");
  }
  uv_walk(&shell->loop, close_handle, shell);
  (void)uv_run(&shell->loop, UV_RUN_DEFAULT);
  cv_broker_free(shell->core);
  cv_broker_store_close(shell->store);
  cv_signals_stop(&shell->signals);
  if (uv_loop_close(&shell->loop) != 0) {
    cv_log(CV_LOG_WARN, "the event loop did not close cleanly");
  }
  cv_mac_free(shell->mac);
  cv_drbg_fini(&shell->drbg);
  cv_tls_unref(shell->server_tls);
  cv_tls_unref(shell->client_tls);
  cv_batch_fini(&shell->batch);
  cv_buf_fini(&shell->out);
  cv_arena_fini(&shell->in);
  cv_arena_fini(&shell->scratch);
  free(shell);
}
