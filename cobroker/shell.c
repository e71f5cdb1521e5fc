/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/shell.h"

#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/both/rotate.h"
#include "cobroker/column.h"
#include "cobroker/gauges.h"
#include "common/base/clock.h"
#include "common/base/fingerprint.h"
#include "common/base/grid.h"
#include "common/base/log.h"
#include "common/daemon/daemon.h"

enum {
  TICK_MS = 100,
  CROWD_TOKENS = 32, /* with fewer tokens in a batch, gathering more would only add delay */
  DRAIN_MS = 5000,   /* it waits for the last commit alone */
};

/* The seal of the session that was used last: the tokens of a gateway come one after the other. */
struct opener {
  struct cv_seal *seal;
  struct cv_key key;
};

struct shell {
  const struct cv_cobroker_settings *settings;
  struct cv_daemon *daemon;
  struct cv_cobroker *core;
  struct cv_cobroker_store *store;
  struct cv_cobroker_batch batch; /* the batch being stored */
  struct cv_digest broker_key;
  struct opener opener;
  struct cv_key_name master;        /* wraps the stored keys */
  struct cv_ring next;              /* is to take over from it; empty: none */
  bool next_flushed, next_recorded; /* its line in the audit log is in the batch being stored; is on disk */
};

/* ---- cryptography for the core ---- */

static enum cv_err export_key(void *data, void *lane, const struct cv_digest *context,
                              uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  return cv_lane_export(lane, CV_SPLIT_EXPORTER, context->bytes, CV_DIGEST_BYTES, ret, CV_SPLIT_SEED_BYTES);
}

static void opener_fini(struct opener *opener) {
  cv_seal_free(opener->seal);
  cv_key_wipe(&opener->key);
  opener->seal = NULL;
}

static enum cv_err use_key(struct opener *opener, const uint8_t key[CV_SPLIT_SEED_BYTES]) {
  _Static_assert(sizeof(opener->key.bytes) == CV_SPLIT_SEED_BYTES, "a session's key is a key");
  if (opener->seal != NULL && memcmp(opener->key.bytes, key, CV_KEY_BYTES) == 0) {
    return CV_OK;
  }
  opener_fini(opener);
  memcpy(opener->key.bytes, key, CV_KEY_BYTES);
  return cv_seal_new(&opener->key, &opener->seal);
}

static enum cv_err open_seed(void *data, const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                             const uint8_t bound[CV_SPLIT_BOUND_BYTES], const uint8_t sealed[CV_SPLIT_SEALED_BYTES],
                             uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  struct shell *shell = data;
  uint8_t nonce[CV_SPLIT_SEAL_NONCE_BYTES];
  CV_TRY(use_key(&shell->opener, key));
  cv_split_seal_nonce(counter, nonce);
  return cv_seal_open_at(shell->opener.seal, nonce, bound, CV_SPLIT_BOUND_BYTES, sealed, CV_SPLIT_SEALED_BYTES, ret);
}

/* ---- connections ---- */

static enum cv_err join(void *party, const struct cv_identity *identity, struct cv_lane *lane, void **ret_conn,
                        struct cv_why *why) {
  const struct shell *shell = party;
  struct cv_cobroker_conn *conn = NULL;
  enum cv_err err = cv_cobroker_join(shell->core, identity, lane, &conn, why);
  *ret_conn = conn;
  return err;
}

static void leave(void *party, void *conn) {
  const struct shell *shell = party;
  cv_cobroker_leave(shell->core, conn);
}

static enum cv_err feed(void *party, void *conn, const void *frame, uint64_t now_ms, uint64_t wall_ms,
                        struct cv_why *why) {
  const struct shell *shell = party;
  return cv_cobroker_on_share(shell->core, conn, frame, now_ms, wall_ms, why);
}

static bool next_out(void *party, struct cv_lane_out *ret) {
  const struct shell *shell = party;
  struct cv_cobroker_out out;
  if (!cv_cobroker_next_out(shell->core, &out)) {
    return false;
  }
  *ret = (struct cv_lane_out){.lane = cv_cobroker_conn_shell(out.conn),
                              .frame = out.frame,
                              .close = out.close ? "the co-broker sent a goodbye" : NULL};
  return true;
}

static bool is_over_share(const void *party, const void *conn) {
  const struct shell *shell = party;
  return cv_cobroker_conn_is_over_share(shell->core, conn);
}

/* A campaign and a plan have an element an arm. */
static size_t largest(const void *party) {
  const struct shell *shell = party;
  return cv_codec_frame_most((uint32_t)shell->settings->limit_arms);
}

static const struct cv_lane_kind kinds[] = {
    {.roles = 1U << CV_ROLE_BROKER,
     .wire = &CV_SHARE_WIRE,
     .largest = largest,
     .largest_out = CV_FRAME_BYTES,
     .feed = feed},
    {.roles = 1U << CV_ROLE_WORKER | 1U << CV_ROLE_GATEWAY, .wire = &CV_SHARE_WIRE, .feed = feed},
};

/* ---- the turn ---- */

static void forget_next(struct shell *shell) {
  cv_ring_fini(&shell->next);
  shell->next_flushed = shell->next_recorded = false;
}

/* Wraps the stored keys by the master key that is to take over. */
static void take_over(struct shell *shell) {
  struct cv_why why;
  struct cv_key_id id = cv_key_id(shell->next.item[0].key);
  struct cv_key_name before = shell->master;
  enum cv_err err = cv_vault_rekey(cv_cobroker_store_vault(shell->store), &shell->next, &why);
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
  }
}

static bool is_pending(void *party) {
  const struct shell *shell = party;
  return cv_cobroker_is_pending(shell->core);
}

static size_t gathered(void *party) {
  const struct shell *shell = party;
  return cv_cobroker_gathered(shell->core);
}

static enum cv_err flush(void *party, uint64_t now_ms, uint64_t wall_ms, bool *ret_store) {
  struct shell *shell = party;
  shell->next_flushed = shell->next.n > 0;
  return cv_cobroker_flush(shell->core, now_ms, wall_ms, &shell->batch, ret_store);
}

/* May run on the storage thread. The batch is its own until stored(): meanwhile the core gathers without flushing. */
static enum cv_err commit(void *party, struct cv_why *why) {
  struct shell *shell = party;
  return cv_cobroker_store_commit(shell->store, &shell->batch, why);
}

static void stored(void *party) {
  struct shell *shell = party;
  shell->next_recorded = shell->next_recorded || shell->next_flushed;
  cv_cobroker_stored(shell->core);
}

static void tick(void *party, uint64_t now_ms, uint64_t wall_ms) {
  const struct shell *shell = party;
  cv_cobroker_tick(shell->core, now_ms, wall_ms);
}

/* Nothing is begun here that could be left undone: what is not stored was not answered. */
static void drain(void *party) {
}

static bool is_drained(const void *party) {
  const struct shell *shell = party;
  return cv_cobroker_is_drained(shell->core);
}

/* ---- certificates ---- */

static bool is_refused(const void *data, const char *serial) {
  return cv_tls_refuses(data, serial);
}

static void renewed(void *party, const struct cv_tls *own) {
  const struct shell *shell = party;
  const struct cv_digest *key = &cv_tls_identity(own)->key;
  cv_cobroker_revoke(shell->core, &(struct cv_cobroker_revoked){.has = is_refused, .data = own});
  if (cv_cobroker_renew(shell->core, key)) {
    cv_log(CV_LOG_WARN,
           "our key is a new one, %s: open campaigns have ended, and broker and workers refuse us until their settings "
           "have it",
           cv_fingerprint_of(key).text);
  }
}

/* ---- admin endpoint ---- */

static enum cv_err health(void *party, struct cv_why *why) {
  const struct shell *shell = party;
  struct cv_cobroker_figures figures;
  cv_cobroker_figures(shell->core, &figures);
  return figures.broker ? CV_OK : cv_fail(why, CV_ERR_STATE, "the broker is not connected");
}

static void status(void *party, char *text, size_t size) {
  const struct shell *shell = party;
  struct cv_cobroker_figures f;
  cv_cobroker_figures(shell->core, &f);
  (void)snprintf(text, size, "campaigns open: %u; connections of workers: %u, sessions: %u; broker %s", f.campaigns,
                 f.crowd, f.sessions, f.broker ? "connected" : "not connected");
}

static void metrics(void *party, const struct cv_refusals *network, struct cv_buf *out) {
  const struct shell *shell = party;
  cv_cobroker_gauges_put(shell->core, network, out);
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

/* The requester's `up --page` asks on the admin socket; the co-broker has no page of its own. */
static enum cv_page_found boundary(void *party, uint64_t id, uint64_t arm, struct cv_buf *out) {
  const struct shell *shell = party;
  struct cv_holding column;
  if (!cv_cobroker_column(shell->core, id, arm, &column)) {
    return CV_PAGE_ABSENT;
  }
  cv_holding_tell(&column, out);
  return CV_PAGE_HERE;
}

static const struct cv_page_ops page_ops = {.boundary = boundary};

/* ---- settings ---- */

static uint64_t micro(double epsilon) {
  return (uint64_t)llround(epsilon * (double)CV_MICRO);
}

struct cv_gate_limits cv_cobroker_settings_limits(const struct cv_cobroker_settings *settings) {
  return (struct cv_gate_limits){.epsilon_micro = micro(settings->limit_epsilon),
                                 .delta_pico = (uint64_t)llround(settings->limit_delta * (double)CV_PICO),
                                 .worker_epsilon_micro = micro(settings->limit_worker_epsilon),
                                 .release_tokens = (uint32_t)settings->limit_release_tokens,
                                 .arms = (uint32_t)settings->limit_arms,
                                 .campaigns = (uint32_t)settings->limit_campaigns,
                                 .submits = (uint32_t)settings->limit_submits,
                                 .kept = (uint32_t)settings->limit_kept,
                                 .tokens = settings->limit_tokens,
                                 .chunks = (uint32_t)settings->limit_chunks,
                                 .is_cobroker = true};
}

enum cv_err cv_cobroker_settings_key(const struct cv_cobroker_settings *settings, struct cv_digest *ret,
                                     struct cv_why *why) {
  const char *text = settings->broker_key;
  return strlen(text) == CV_FINGERPRINT_DIGITS && cv_fingerprint_read(text, ret)
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID,
                       "broker_key: not a key; expected 64 hexadecimal digits, the SHA-256 of the broker's public key");
}

enum cv_err cv_cobroker_settings_database(const struct cv_cobroker_settings *settings, char ret[CV_COBROKER_PATH_BYTES],
                                          struct cv_why *why) {
  int n = snprintf(ret, CV_COBROKER_PATH_BYTES, "%s/cobroker.db", settings->state);
  return n < CV_COBROKER_PATH_BYTES ? CV_OK : cv_fail(why, CV_ERR_INVALID, "state: path too long");
}

/* ---- start and end ---- */

static enum cv_err prepare(void *party, struct cv_daemon *daemon, struct cv_why *why) {
  struct shell *shell = party;
  return cv_cobroker_settings_key(shell->settings, &shell->broker_key, why);
}

/* Reads the master keys, or creates one for a new database: to an existing one it would never fit. */
static enum cv_err open_ring(const struct shell *shell, const char *database, struct cv_ring *ret, struct cv_why *why) {
  const char *path = shell->settings->seal_key;
  struct stat info;
  return stat(path, &info) != 0 && !cv_cobroker_store_exists(database)
             ? cv_ring_create(path, cv_clock_wall_ms() / 1000, ret, why)
             : cv_ring_read(path, ret, why);
}

static enum cv_err open_store(struct shell *shell, const char *database, struct cv_why *why) {
  struct cv_ring ring;
  CV_TRY(open_ring(shell, database, &ring, why));
  const struct cv_store_files files = {.database = database, .anchor = shell->settings->anchor};
  enum cv_err err = cv_cobroker_store_open(&files, &ring, &shell->store, why);
  struct cv_key_id master = cv_key_id(ring.item[0].key);
  shell->master = cv_key_name(&master);
  cv_ring_fini(&ring);
  return err;
}

static enum cv_err open_core(struct shell *shell) {
  const struct cv_cobroker_settings *settings = shell->settings;
  struct cv_cobroker_config config = {
      .duo = {.broker = shell->broker_key, .cobroker = cv_daemon_identity(shell->daemon)->key},
      .limits = cv_cobroker_settings_limits(settings),
      .sessions = (uint32_t)settings->limit_sessions,
      .digest = cv_sha256,
      .noise = cv_daemon_rng(shell->daemon),
      .noise_seeded = settings->noise_seeded,
      .noise_seed = settings->noise_seed,
      .key = cv_daemon_rng(shell->daemon),
      .export_key = export_key,
      .open_seed = open_seed,
      .crypto_data = shell,
      .note = cv_daemon_note,
      .note_data = shell->daemon,
      .audit = cv_daemon_audit,
      .audit_data = shell->daemon,
  };
  (void)snprintf(config.broker, sizeof(config.broker), "%s", settings->broker_name);
  return cv_cobroker_new(&config, &shell->core);
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
static enum cv_err keep_apart(const struct cv_cobroker_settings *settings, struct cv_why *why) {
  const struct { const char *key, *file; } apart[] = {{"anchor", settings->anchor}, {"seal_key", settings->seal_key}};
  for (size_t i = 0; i < CV_COUNT(apart); i++) {
    if (lies_in(apart[i].file, settings->state)) {
      return cv_fail(why, CV_ERR_INVALID, "%s: %s is in the state folder %s; expected a file outside of it",
                     apart[i].key, apart[i].file, settings->state);
    }
  }
  return CV_OK;
}

static enum cv_err open_all(void *party, struct cv_daemon *daemon, struct cv_why *why) {
  struct shell *shell = party;
  const struct cv_cobroker_settings *settings = shell->settings;
  char database[CV_COBROKER_PATH_BYTES];
  struct stat info;
  shell->daemon = daemon;
  CV_TRY(cv_cobroker_settings_database(settings, database, why));
  if (stat(settings->state, &info) != 0 || !S_ISDIR(info.st_mode)) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "state: %s is not a folder; expected an existing folder", settings->state);
  }
  CV_TRY(keep_apart(settings, why));
  CV_TRY(open_store(shell, database, why));
  CV_TRY(open_core(shell));
  return cv_cobroker_store_load(shell->store, shell->core, cv_clock_mono_ms(), cv_clock_wall_ms(), why);
}

static void close_all(void *party) {
  struct shell *shell = party;
  cv_cobroker_free(shell->core);
  cv_cobroker_store_close(shell->store);
  cv_ring_fini(&shell->next);
  opener_fini(&shell->opener);
  cv_cobroker_batch_fini(&shell->batch);
}

static enum cv_err database(void *party, struct cv_db **ret, struct cv_why *why) {
  struct shell *shell = party;
  *ret = cv_cobroker_store_database(shell->store);
  return CV_OK;
}

static const struct cv_daemon_ops ops = {
    .prepare = prepare,
    .open = open_all,
    .close = close_all,
    .lane = {.kind = kinds,
             .kinds = CV_COUNT(kinds),
             .join = join,
             .leave = leave,
             .next_out = next_out,
             .is_over_share = is_over_share},
    .between = between,
    .is_pending = is_pending,
    .gathered = gathered,
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
    .metrics = metrics,
    .seal = seal,
    .rewrap = rewrap,
    .page = &page_ops,
};

int cv_cobroker_run(const struct cv_cobroker_settings *settings) {
  struct shell shell = {.settings = settings};
  struct cv_daemon_config config = {
      .program = "crowdveil-cobroker",
      .ops = &ops,
      .party = &shell,
      .settings = &settings->daemon,
      .state = settings->state,
      .database = "cobroker.db",
      .reread = settings->seal_key,
      .roles = 1U << CV_ROLE_COBROKER,
      .listen = settings->listen,
      .from = {.roles = 1U << CV_ROLE_BROKER | 1U << CV_ROLE_WORKER | 1U << CV_ROLE_GATEWAY},
      .limits = CV_NET_DEFAULTS,
      .tick_ms = TICK_MS,
      .crowd = CROWD_TOKENS,
      .has_thread = true,
      .drain_ms = DRAIN_MS,
      .not_lost = "nothing that was answered is lost",
  };
  config.limits.connections = (unsigned)settings->connections;
  config.limits.handshakes = (unsigned)settings->handshakes;
  config.limits.hellos = (unsigned)settings->hellos;
  return cv_daemon_run(&config);
}
