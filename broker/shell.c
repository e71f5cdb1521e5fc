/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/shell.h"
#include "broker/showing.h"

#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "broker/both/rotate.h"
#include "broker/gauges.h"
#include "broker/reading.h"
#include "common/base/clock.h"
#include "common/base/fingerprint.h"
#include "common/base/grid.h"
#include "common/base/log.h"
#include "common/daemon/daemon.h"
#include "common/net/address.h"

enum {
  TICK_MS = 50,
  PACE_MS = 1,       /* between two batches of many workers, unless BATCH_TOKENS wait */
  CROWD_TOKENS = 32, /* with fewer tokens in a batch, gathering more would only add delay */
  BATCH_TOKENS = 1024,
  SHARED_JOURNAL_BYTES = 32 << 20, /* folding rewrites rows, and a server keeps old ones until it has vacuumed */
};

#define REST_NS (UINT64_C(30) * 1000000000) /* after a term that a peer has ended */

struct shell {
  const struct cv_broker_settings *settings;
  struct cv_daemon *daemon;
  struct cv_broker *core;
  struct cv_broker_store *store;
  struct cv_broker_batch batch; /* the batch being stored */
  struct cv_mac *mac;
  struct cv_digest cobroker; /* the co-broker's key; zeros: none */
  struct cv_reading reading; /* of campaigns that have ended */
  struct cv_standby standby; /* of a database that is shared */
  struct cv_ring ring;       /* for it */
  struct cv_broker_config config;
  bool serves;               /* core and store are open; the loop's */
  bool stores;               /* the batch being stored is a commit */
  bool renewed;              /* the certificate, before that */
  bool overtaken;            /* a peer has shown that there is a later term */
  struct cv_key_name master; /* wraps the stored keys */
  struct cv_ring next;       /* is to take over from it; empty: none */
  /* Its line in the audit log is in the batch that is being stored; is on disk. */
  bool next_flushed, next_recorded;
};

static bool has_cobroker(const struct cv_broker_settings *settings) {
  return settings->cobroker != NULL && settings->cobroker[0] != '\0';
}

static bool is_shared(const struct shell *shell) {
  return shell->settings->store != NULL;
}

/* ---- connections ---- */

static enum cv_err join(void *party, const struct cv_identity *identity, struct cv_lane *lane, void **ret_conn,
                        struct cv_why *why) {
  const struct shell *shell = party;
  struct cv_broker_conn *conn = NULL;
  enum cv_err err = cv_broker_join(shell->core, identity, lane, &conn, why);
  *ret_conn = conn;
  return err;
}

static void leave(void *party, void *conn) {
  const struct shell *shell = party;
  cv_broker_leave(shell->core, conn);
}

static enum cv_err feed_crowd(void *party, void *conn, const void *frame, uint64_t now_ms, uint64_t wall_ms,
                              struct cv_why *why) {
  struct shell *shell = party;
  enum cv_err err = cv_broker_on_crowd(shell->core, conn, frame, now_ms, wall_ms, why);
  if (cv_broker_is_overtaken(shell->core)) {
    const struct cv_why reason = {.text = "a worker has a ticket that only a later term can have made"};
    cv_daemon_fail(shell->daemon, "the term is over", &reason);
    shell->overtaken = true;
  }
  return err;
}

static enum cv_err feed_order(void *party, void *conn, const void *frame, uint64_t now_ms, uint64_t wall_ms,
                              struct cv_why *why) {
  const struct shell *shell = party;
  return cv_broker_on_order(shell->core, conn, frame, now_ms, wall_ms, why);
}

static enum cv_err feed_rank(void *party, void *conn, const void *frame, uint64_t now_ms, uint64_t wall_ms,
                             struct cv_why *why) {
  const struct shell *shell = party;
  return cv_broker_on_rank(shell->core, conn, frame, now_ms, why);
}

static enum cv_err feed_share(void *party, void *conn, const void *frame, uint64_t now_ms, uint64_t wall_ms,
                              struct cv_why *why) {
  const struct shell *shell = party;
  return cv_broker_on_share(shell->core, conn, frame, now_ms, wall_ms, why);
}

/* Passes the core's next output to its connection. */
static bool next_out(void *party, struct cv_lane_out *ret) {
  const struct shell *shell = party;
  struct cv_broker_out out;
  if (!shell->serves || !cv_broker_next_out(shell->core, &out)) {
    return false;
  }
  *ret = (struct cv_lane_out){.lane = cv_broker_conn_shell(out.conn),
                              .frame = out.frame.any,
                              .close = out.close ? "the broker sent a goodbye" : NULL};
  return true;
}

static bool is_over_share(const void *party, const void *conn) {
  const struct shell *shell = party;
  return cv_broker_conn_is_over_share(shell->core, conn);
}

static void hold(void *party, void *conn, bool hold) {
  const struct shell *shell = party;
  cv_broker_hold(shell->core, conn, hold);
}

enum { CLIENTS = 1U << CV_ROLE_WORKER | 1U << CV_ROLE_GATEWAY | 1U << CV_ROLE_REQUESTER };

/* A requester may name as many arms as the operator permits; answers may be about campaigns from before a lower limit.
 * */
static size_t largest_order(const void *party) {
  const struct shell *shell = party;
  return cv_codec_frame_most((uint32_t)shell->settings->limit_arms);
}

static size_t largest_rank(const void *party) {
  return CV_LARGE_FRAME_BYTES;
}

/* Verdicts, halves and positions: nothing grows with the arms. What is sent does. */
static size_t largest_share(const void *party) {
  return CV_FRAME_BYTES;
}

static const struct cv_lane_kind kinds[] = {
    {.roles = 1U << CV_ROLE_WORKER | 1U << CV_ROLE_GATEWAY, .wire = &CV_CROWD_WIRE, .feed = feed_crowd},
    {.roles = 1U << CV_ROLE_REQUESTER,
     .wire = &CV_ORDER_WIRE,
     .largest = largest_order,
     .largest_out = CV_LARGE_FRAME_BYTES,
     .feed = feed_order},
    {.roles = 1U << CV_ROLE_THIRDPARTY,
     .wire = &CV_RANK_WIRE,
     .largest = largest_rank,
     .largest_out = CV_LARGE_FRAME_BYTES,
     .feed = feed_rank},
    {.roles = 1U << CV_ROLE_COBROKER,
     .wire = &CV_SHARE_WIRE,
     .largest = largest_share,
     .largest_out = CV_LARGE_FRAME_BYTES,
     .feed = feed_share},
};

/* ---- events, batches and outputs ---- */

static void forget_next(struct shell *shell) {
  cv_ring_fini(&shell->next);
  shell->next_flushed = shell->next_recorded = false;
}

/* Wraps the stored keys by the master key that is to take over. */
static void take_over(struct shell *shell) {
  struct cv_why why;
  struct cv_key_id id = cv_key_id(shell->next.item[0].key);
  struct cv_key_name before = shell->master;
  enum cv_err err = cv_vault_rekey(cv_broker_store_vault(shell->store), &shell->next, &why);
  forget_next(shell);
  if (err != CV_OK) {
    cv_daemon_fail(shell->daemon, "cannot wrap the keys anew", &why);
    return;
  }
  shell->master = cv_key_name(&id);
  cv_log(CV_LOG_INFO, "seal key %s has taken over from %s", shell->master.text, before.text);
}

/* The turn calls this only while no batch is being stored: the database has one user at a time. */
static void between(void *party) {
  struct shell *shell = party;
  if (shell->next_recorded) {
    take_over(shell);
  } else if (shell->serves) {
    cv_reading_go(&shell->reading, shell->daemon, shell->store, shell->core);
  }
}

static bool is_pending(void *party) {
  const struct shell *shell = party;
  return shell->serves && cv_broker_is_pending(shell->core);
}

static size_t gathered(void *party) {
  const struct shell *shell = party;
  return shell->serves ? cv_broker_gathered(shell->core) : 0;
}

static bool has_rest(void *party) {
  const struct shell *shell = party;
  return shell->serves && cv_broker_is_unserved(shell->core);
}

static enum cv_err flush(void *party, uint64_t now_ms, uint64_t wall_ms, bool *ret_store) {
  struct shell *shell = party;
  shell->next_flushed = shell->next.n > 0;
  shell->stores = *ret_store = false;
  CV_TRY(!shell->serves ? CV_OK : cv_broker_flush(shell->core, now_ms, wall_ms, &shell->batch, ret_store));
  shell->stores = *ret_store;
  return CV_OK;
}

/* May run on the storage thread. The batch is its own until stored(): meanwhile the core gathers without flushing. */
static enum cv_err commit(void *party, struct cv_why *why) {
  struct shell *shell = party;
  return cv_broker_store_commit(shell->store, &shell->batch, why);
}

static void stored(void *party) {
  struct shell *shell = party;
  shell->next_recorded = shell->next_recorded || shell->next_flushed;
  if (shell->serves) {
    cv_broker_stored(shell->core);
  }
  if (is_shared(shell) && shell->stores) {
    cv_standby_stored(&shell->standby, cv_clock_mono_ms());
  }
}

/* ---- time ---- */

static void tick(void *party, uint64_t now_ms, uint64_t wall_ms) {
  struct shell *shell = party;
  if (shell->serves) {
    cv_broker_tick(shell->core, now_ms, wall_ms);
  }
  if (is_shared(shell)) {
    cv_standby_tick(&shell->standby, now_ms);
  }
}

/* Another broker goes on with what is shared: only what is gathered is stored. */
static void drain(void *party) {
  const struct shell *shell = party;
  if (!is_shared(shell)) {
    cv_broker_drain(shell->core);
  }
}

static bool is_drained(const void *party) {
  const struct shell *shell = party;
  return is_shared(shell) ? !shell->serves || !cv_broker_is_pending(shell->core) : cv_broker_is_drained(shell->core);
}

/* The term is given back before the connections are closed, so that the next broker has it when their peers call. */
static void stop(void *party) {
  struct shell *shell = party;
  if (is_shared(shell) && shell->daemon != NULL && !cv_daemon_is_storing(shell->daemon)) {
    cv_standby_leave(&shell->standby);
  }
}

/* ---- certificates ---- */

static void take_key(const struct shell *shell, const struct cv_digest *key) {
  if (cv_broker_renew(shell->core, key)) {
    cv_log(CV_LOG_WARN,
           "our key is a new one, %s: open campaigns with two brokers have ended, and co-broker and workers refuse us "
           "until their settings have it",
           cv_fingerprint_of(key).text);
  }
}

static void renewed(void *party, const struct cv_tls *own) {
  struct shell *shell = party;
  if (shell->serves) {
    take_key(shell, &cv_tls_identity(own)->key);
  }
  shell->renewed = !shell->serves;
}

/* ---- admin endpoint ---- */

static enum cv_err health(void *party, struct cv_why *why) {
  const struct shell *shell = party;
  struct cv_broker_figures figures;
  if (is_shared(shell)) {
    CV_TRY(cv_standby_health(&shell->standby, why));
  }
  if (!shell->serves) {
    return CV_OK;
  }
  cv_broker_figures(shell->core, &figures);
  if (!figures.thirdparty) {
    return cv_fail(why, CV_ERR_STATE, "the third-party is not connected");
  }
  return figures.cobroker || !has_cobroker(shell->settings)
             ? CV_OK
             : cv_fail(why, CV_ERR_STATE, "the co-broker is not connected");
}

static enum cv_err active(void *party, struct cv_why *why) {
  const struct shell *shell = party;
  CV_TRY(is_shared(shell) ? cv_standby_health(&shell->standby, why) : CV_OK);
  return shell->serves ? CV_OK : cv_fail(why, CV_ERR_STATE, "role=standby");
}

static void status(void *party, char *text, size_t size) {
  const struct shell *shell = party;
  struct cv_broker_figures f;
  if (!shell->serves) {
    cv_standby_status(&shell->standby, text, size);
    return;
  }
  cv_broker_figures(shell->core, &f);
  char role[480] = "";
  if (is_shared(shell)) {
    cv_standby_status(&shell->standby, role, sizeof(role));
  }
  (void)snprintf(text, size, "%s%scampaigns open: %u; connections of workers: %u, of requesters: %u; third-party %s%s",
                 role, role[0] == '\0' ? "" : "; ", f.opening + f.running + f.stopping,
                 f.conns[CV_ROLE_WORKER] + f.conns[CV_ROLE_GATEWAY], f.conns[CV_ROLE_REQUESTER],
                 f.thirdparty ? "connected" : "not connected",
                 !has_cobroker(shell->settings) ? ""
                 : f.cobroker                   ? "; co-broker connected"
                                                : "; co-broker not connected");
}

static void metrics(void *party, const struct cv_refusals *network, struct cv_buf *out) {
  const struct shell *shell = party;
  if (is_shared(shell)) {
    cv_standby_metrics(&shell->standby, out);
  }
  if (shell->serves) {
    cv_broker_gauges_put(shell->core, network, out);
  }
}

static void seal(void *party, struct cv_admin_line *ret) {
  const struct shell *shell = party;
  (void)snprintf(ret->text, sizeof(ret->text), "%s", shell->master.text);
}

/* Answered at once; the keys are wrapped when the line in the audit log is on disk and no batch is being stored. */
static enum cv_err rewrap(void *party, struct cv_admin_line *ret, struct cv_why *why) {
  struct shell *shell = party;
  struct cv_ring ring;
  bool fits = false;
  if (!shell->serves) {
    return cv_fail(why, CV_ERR_STATE, "this broker stands by; expected the active one");
  }
  CV_TRY(cv_ring_read(shell->settings->seal_key, &ring, why));
  for (size_t i = 0; i < ring.n; i++) {
    struct cv_key_id id = cv_key_id(ring.item[i].key);
    fits = fits || strcmp(cv_key_name(&id).text, shell->master.text) == 0;
  }
  if (!fits) {
    enum cv_err err = cv_fail(why, CV_ERR_STATE, "%s has %s; expected also key %s, which wraps now",
                              shell->settings->seal_key, cv_ring_names(&ring).text, shell->master.text);
    cv_ring_fini(&ring);
    return err;
  }
  forget_next(shell);
  shell->next = ring;
  struct cv_key_id id = cv_key_id(ring.item[0].key);
  struct cv_key_name next = cv_key_name(&id);
  struct cv_event_fact facts[2];
  const struct cv_event event = cv_rotate_event(&shell->master, &next, facts);
  cv_daemon_audit(shell->daemon, &event);
  shell->next_recorded = shell->settings->daemon.audit == NULL;
  (void)snprintf(ret->text, sizeof(ret->text), "%s", next.text);
  return CV_OK;
}

/* ---- start and end ---- */

static enum cv_err tag(void *data, const void *bytes, size_t bytes_n, uint8_t *to, size_t n) {
  return cv_mac_tag(data, bytes, bytes_n, to, n);
}

/* Reads the master keys, or creates one for a new database. */
static enum cv_err open_ring(struct shell *shell, const char *database, struct cv_ring *ret, struct cv_why *why) {
  /* A missing key is created only for a new database: to an existing one it would never fit. */
  const char *path = shell->settings->seal_key;
  struct stat info;
  return stat(path, &info) != 0 && !cv_broker_store_exists(database)
             ? cv_ring_create(path, cv_clock_wall_ms() / 1000, ret, why)
             : cv_ring_read(path, ret, why);
}

static enum cv_err open_tickets(struct shell *shell, struct cv_why *why) {
  struct cv_key tickets;
  CV_TRY(cv_broker_store_tickets(shell->store, &tickets, why));
  enum cv_err err = cv_mac_new(&tickets, &shell->mac);
  cv_key_wipe(&tickets);
  return err == CV_OK ? err : cv_fail(why, err, "cannot use the key of tickets: %s", cv_err_text(err));
}

static uint64_t micro(double epsilon) {
  return (uint64_t)llround(epsilon * (double)CV_MICRO);
}

struct cv_gate_limits cv_broker_settings_limits(const struct cv_broker_settings *settings) {
  return (struct cv_gate_limits){.epsilon_micro = micro(settings->limit_epsilon),
                                 .delta_pico = (uint64_t)llround(settings->limit_delta * (double)CV_PICO),
                                 .worker_epsilon_micro = micro(settings->limit_worker_epsilon),
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
                                 .alone = !has_cobroker(settings),
                                 .unsafe_mechanisms = settings->unsafe_mechanisms};
}

/* The core's configuration, but for what the store has. */
static void configure(struct shell *shell) {
  const struct cv_broker_settings *settings = shell->settings;
  shell->config = (struct cv_broker_config){
      .limits = cv_broker_settings_limits(settings),
      .digest = cv_sha256,
      .noise = cv_daemon_rng(shell->daemon),
      .noise_seeded = settings->noise_seeded,
      .noise_seed = settings->noise_seed,
      .stall_ms = cv_clock_is_followed() ? UINT64_MAX : 0, /* the test has advanced it */
      .journal_bytes = is_shared(shell) ? SHARED_JOURNAL_BYTES : 0,
      .note = cv_daemon_note,
      .note_data = shell->daemon,
      .audit = cv_daemon_audit,
      .audit_data = shell->daemon,
  };
  (void)snprintf(shell->config.name, sizeof(shell->config.name), "%s", cv_daemon_identity(shell->daemon)->name);
  shell->config.duo = (struct cv_duo){.broker = cv_daemon_identity(shell->daemon)->key, .cobroker = shell->cobroker};
}

/* Makes the core and loads it from the open store. */
static enum cv_err open_core(struct shell *shell, struct cv_why *why) {
  struct cv_broker_config *config = &shell->config;
  CV_TRY(open_tickets(shell, why));
  config->term = cv_broker_store_term(shell->store);
  config->tagger = (struct cv_tagger){.tag = tag, .data = shell->mac};
  memcpy(config->database, cv_broker_store_id(shell->store), sizeof(config->database));
  CV_TRY(cv_broker_new(config, &shell->core));
  return cv_broker_store_load(shell->store, shell->core, cv_clock_mono_ms(), cv_clock_wall_ms(), why);
}

/* Whether a file, which need not exist, is in a folder or below it, after resolving symbolic links. */
static bool lies_in(const char *file, const char *folder) {
  char copy[PATH_MAX], inner[PATH_MAX], outer[PATH_MAX];
  if (snprintf(copy, sizeof(copy), "%s", file) >= (int)sizeof(copy) || realpath(dirname(copy), inner) == NULL ||
      realpath(folder, outer) == NULL) {
    return false;
  }
  /* A prefix counts only up to a slash ("/state2" is not in "/state"); n is 1 for the root folder alone. */
  size_t n = strlen(outer);
  return strncmp(inner, outer, n) == 0 && (inner[n] == '/' || inner[n] == '\0' || n == 1);
}

/* In the state folder, an older anchor would be restored with the state, and the key would be copied with the sums. */
static enum cv_err keep_apart(const struct cv_broker_settings *settings, struct cv_why *why) {
  const struct { const char *key, *file; } apart[] = {{"anchor", settings->anchor}, {"seal_key", settings->seal_key}};
  for (size_t i = 0; i < CV_COUNT(apart); i++) {
    if (lies_in(apart[i].file, settings->state)) {
      return cv_fail(why, CV_ERR_INVALID, "%s: %s is in the state folder %s; expected a file outside of it",
                     apart[i].key, apart[i].file, settings->state);
    }
  }
  return CV_OK;
}

static enum cv_err open_store(struct shell *shell, const char *database, struct cv_why *why) {
  struct cv_ring ring;
  CV_TRY(open_ring(shell, database, &ring, why));
  const struct cv_store_files files = {.database = database, .anchor = shell->settings->anchor};
  enum cv_err err = cv_broker_store_open(&files, &ring, &shell->store, why);
  struct cv_key_id master = cv_key_id(ring.item[0].key);
  shell->master = cv_key_name(&master);
  cv_ring_fini(&ring);
  return err;
}

/* ---- a shared store ---- */

static enum cv_err load_shared(void *party, struct cv_broker_store *store, struct cv_why *why) {
  struct shell *shell = party;
  shell->store = store;
  shell->reading.is_beside = true;
  return open_core(shell, why);
}

static enum cv_err work_shared(void *data, struct cv_why *why) {
  return cv_standby_work(data, why);
}

static void worked_shared(void *data, enum cv_err err, const struct cv_why *why) {
  cv_standby_worked(data, err, why, cv_clock_mono_ms());
}

static bool borrow_shared(void *party) {
  struct shell *shell = party;
  return cv_daemon_borrow(shell->daemon, work_shared, worked_shared, &shell->standby);
}

static void unload_shared(void *party) {
  struct shell *shell = party;
  cv_broker_free(shell->core);
  cv_broker_store_close(shell->store);
  cv_mac_free(shell->mac);
  shell->core = NULL;
  shell->store = NULL;
  shell->mac = NULL;
}

static void begin_serving(void *party) {
  struct shell *shell = party;
  shell->serves = true;
  if (shell->renewed) {
    take_key(shell, &cv_daemon_identity(shell->daemon)->key);
  }
  cv_daemon_serve(shell->daemon);
}

static void note_shared(void *party, const struct cv_note *note) {
  const struct shell *shell = party;
  cv_daemon_note(shell->daemon, note);
}

static void fail_shared(void *party, const char *what, const struct cv_why *why) {
  const struct shell *shell = party;
  cv_daemon_fail(shell->daemon, what, why);
}

/* Where the clients of this broker find it, for the status of others: a listener on all addresses is at this host. */
static void tell_address(const struct cv_broker_settings *settings, char *to, size_t size) {
  struct cv_address address;
  char host[256] = "";
  if (cv_address_parse(settings->listen, &address, NULL) != CV_OK ||
      (strcmp(address.host, "0.0.0.0") != 0 && strcmp(address.host, "::") != 0) ||
      gethostname(host, sizeof(host) - 1) != 0) {
    (void)snprintf(to, size, "%s", settings->listen);
    return;
  }
  (void)snprintf(to, size, "%s:%s", host, address.port);
}

static enum cv_err open_shared(struct shell *shell, struct cv_why *why) {
  const struct cv_broker_settings *settings = shell->settings;
  char address[300];
  CV_TRY(cv_ring_read(settings->seal_key, &shell->ring, why));
  struct cv_key_id master = cv_key_id(shell->ring.item[0].key);
  shell->master = cv_key_name(&master);
  tell_address(settings, address, sizeof(address));
  shell->standby = (struct cv_standby){.ops = CV_BROKER_REMOTE,
                                       .config = {.store = settings->store,
                                                  .anchor = settings->anchor,
                                                  .name = shell->config.name,
                                                  .address = address,
                                                  .ring = &shell->ring,
                                                  .replicated = settings->store_durability == CV_BROKER_REPLICATED},
                                       .borrow = borrow_shared,
                                       .load = load_shared,
                                       .unload = unload_shared,
                                       .active = begin_serving,
                                       .note = note_shared,
                                       .fail = fail_shared,
                                       .party = shell};
  return cv_standby_open(&shell->standby, why);
}

/* ---- start and end of the party ---- */

static enum cv_err open_all(void *party, struct cv_daemon *daemon, struct cv_why *why) {
  struct shell *shell = party;
  const struct cv_broker_settings *settings = shell->settings;
  char database[4096];
  shell->daemon = daemon;
  configure(shell);
  if (is_shared(shell)) {
    return open_shared(shell, why);
  }
  if (snprintf(database, sizeof(database), "%s/broker.db", settings->state) >= (int)sizeof(database)) {
    return cv_fail(why, CV_ERR_INVALID, "state: path too long; expected at most 4085 bytes");
  }
  struct stat info;
  if (stat(settings->state, &info) != 0 || !S_ISDIR(info.st_mode)) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "state: %s is not a folder; expected an existing folder", settings->state);
  }
  CV_TRY(keep_apart(settings, why));
  /* The store first: it has the key of tickets, which the core needs. */
  CV_TRY(open_store(shell, database, why));
  CV_TRY(open_core(shell, why));
  shell->serves = true;
  return CV_OK;
}

static void close_all(void *party) {
  struct shell *shell = party;
  cv_broker_free(shell->core);
  cv_broker_store_close(shell->store);
  cv_standby_close(&shell->standby);
  cv_ring_fini(&shell->ring);
  cv_ring_fini(&shell->next);
  cv_mac_free(shell->mac);
  cv_broker_batch_fini(&shell->batch);
}

static enum cv_err database(void *party, struct cv_db **ret, struct cv_why *why) {
  struct shell *shell = party;
  if (is_shared(shell)) {
    return cv_fail(why, CV_ERR_STATE, "the state is in PostgreSQL; expected a base backup of the server");
  }
  *ret = cv_broker_store_database(shell->store);
  return CV_OK;
}

/* The requester's `up --page` asks on the admin socket; the broker has no page of its own. */
static enum cv_page_found boundary(void *party, uint64_t id, uint64_t arm, struct cv_buf *out) {
  const struct shell *shell = party;
  return shell->serves ? cv_broker_showing(shell->core, id, arm, out) : CV_PAGE_ABSENT;
}

static const struct cv_page_ops page_ops = {.boundary = boundary};

static const struct cv_daemon_ops ops = {
    .open = open_all,
    .stop = stop,
    .close = close_all,
    .lane = {.kind = kinds,
             .kinds = CV_COUNT(kinds),
             .join = join,
             .leave = leave,
             .next_out = next_out,
             .is_over_share = is_over_share,
             .hold = hold},
    .between = between,
    .is_pending = is_pending,
    .gathered = gathered,
    .has_rest = has_rest,
    .flush = flush,
    .commit = commit,
    .stored = stored,
    .tick = tick,
    .drain = drain,
    .is_drained = is_drained,
    .renewed = renewed,
    .status = status,
    .database = database,
    .health = health,
    .active = active,
    .metrics = metrics,
    .seal = seal,
    .rewrap = rewrap,
    .page = &page_ops,
};

enum cv_err cv_broker_settings_cobroker(const struct cv_broker_settings *settings, struct cv_digest *ret,
                                        struct cv_why *why) {
  const char *key = settings->cobroker_key;
  struct cv_address address;
  struct cv_why reason;
  if (!has_cobroker(settings)) {
    return key == NULL || key[0] == '\0'
               ? CV_OK
               : cv_fail(why, CV_ERR_INVALID, "cobroker_key without cobroker; expected both or neither");
  }
  if (cv_address_parse(settings->cobroker, &address, &reason) != CV_OK) {
    return cv_fail(why, CV_ERR_INVALID, "cobroker: %.300s", reason.text);
  }
  return key != NULL && strlen(key) == CV_FINGERPRINT_DIGITS && cv_fingerprint_read(key, ret)
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID,
                       "cobroker_key: \"%.80s\"; expected the 64 hexadecimal digits of the co-broker's fingerprint",
                       key != NULL ? key : "");
}

const char *const CV_BROKER_DURABILITIES[] = {
    [CV_BROKER_REPLICATED] = "replicated", [CV_BROKER_ONE_SERVER] = "one-server", NULL};

enum cv_err cv_broker_settings_store(const struct cv_broker_settings *settings, struct cv_remote_needs *ret,
                                     struct cv_why *why) {
  struct cv_why reason;
  bool is_file = settings->state != NULL;
  if (is_file == (settings->store != NULL)) {
    return cv_fail(why, CV_ERR_INVALID, "%s; expected one of them",
                   is_file ? "state and store" : "no state and no store");
  }
  if (is_file) {
    return CV_OK;
  }
  const struct cv_remote_ops *remote = CV_BROKER_REMOTE;
  if (remote == NULL) {
    return cv_fail(why, CV_ERR_INVALID,
                   "store: this program keeps its state in a file; expected the program "
                   "crowdveil-broker-postgresql");
  }
  if (has_cobroker(settings)) {
    return cv_fail(why, CV_ERR_INVALID, "cobroker with store; expected state: campaigns with two brokers need a file");
  }
  return remote->check(settings->store, ret, &reason) == CV_OK
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "store: %.400s", reason.text);
}

/* A database that was put back gives its term to whoever asks, and the next ticket would end that term, too: another
 * broker has the time to take it, and a person to see why. The lock is free by now. */
static void rest(void) {
  uv_mutex_t mutex;
  uv_cond_t never;
  cv_log(CV_LOG_WARN,
         "resting for %u s: another broker may have the term; if the database was restored, run crowdveil "
         "recover",
         (unsigned)(REST_NS / UINT64_C(1000000000)));
  if (uv_mutex_init(&mutex) != 0 || uv_cond_init(&never) != 0) {
    return;
  }
  /* All is closed: the process may be ended at any time. */
  (void)signal(SIGTERM, SIG_DFL);
  (void)signal(SIGINT, SIG_DFL);
  uv_mutex_lock(&mutex);
  (void)uv_cond_timedwait(&never, &mutex, REST_NS);
  uv_mutex_unlock(&mutex);
}

int cv_broker_run(const struct cv_broker_settings *settings) {
  struct shell shell = {.settings = settings};
  struct cv_remote_needs needs = {.dials = 0};
  struct cv_why why;
  if (cv_broker_settings_cobroker(settings, &shell.cobroker, &why) != CV_OK ||
      cv_broker_settings_store(settings, &needs, &why) != CV_OK) {
    cv_log(CV_LOG_ERROR, "%s", why.text);
    return 2;
  }
  struct cv_daemon_config config = {
      .program = CV_BROKER_PROGRAM,
      .ops = &ops,
      .party = &shell,
      .settings = &settings->daemon,
      .state = settings->state,
      .database = "broker.db",
      .reread = settings->seal_key,
      .roles = 1U << CV_ROLE_BROKER,
      .listen = settings->listen,
      .from = {.roles = CLIENTS},
      .dial = {{.address = settings->thirdparty,
                .to = {.roles = 1U << CV_ROLE_THIRDPARTY, .names = settings->thirdparty_name},
                .called = "third-party"},
               {.address = has_cobroker(settings) ? settings->cobroker : NULL,
                .to = {.roles = 1U << CV_ROLE_COBROKER, .key = &shell.cobroker},
                .called = "co-broker"}},
      .limits = CV_NET_DEFAULTS,
      .tick_ms = TICK_MS,
      .pace_ms = PACE_MS,
      .crowd = CROWD_TOKENS,
      .full = BATCH_TOKENS,
      .has_thread = true,
      /* By then every open assignment is answered or expired. */
      .drain_ms = settings->lease_ms,
      .not_lost = "nothing that was acknowledged is lost",
  };
  config.stands_by = config.moves = config.only_thread = is_shared(&shell);
  for (size_t i = 0; i < CV_DAEMON_SERVERS; i++) {
    config.dials[i] = i < needs.dials ? needs.dial[i] : NULL;
    config.reads[i] = i < needs.reads ? needs.read[i] : NULL;
  }
  config.limits.connections = (unsigned)settings->connections;
  config.limits.handshakes = (unsigned)settings->handshakes;
  config.limits.hellos = (unsigned)settings->hellos;
  int status = cv_daemon_run(&config);
  if (shell.overtaken) {
    rest();
  }
  return status;
}
