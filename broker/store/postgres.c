/* SPDX-License-Identifier: Apache-2.0 */
/* Who is active: the session, the term and the anchor. */
#include "broker/store/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/both/meta.h"
#include "broker/store.h"
#include "broker/store/postgres_schema.h"
#include "broker/store/postgres_state.h"
#include "common/base/clock.h"

enum {
  TIMEOUT_MS = 5000, /* of every answer */
  STILL_MS = 5000,   /* a holder that has stood still for so long is terminated, or waits in vain */
  POLL_MS = 200,     /* between two attempts */
  RETRY_MS = 2000,   /* after a failure */
  REST_MS = 30000,   /* while what is stored does not fit */
  MIGRATE_MS = 60000
};

static const struct cv_term_ops term_ops;

static bool is_zero(const struct cv_anchor_mark *mark) {
  return mark->term == 0;
}

/* ---- settings ---- */

static enum cv_err check_uri(const char *store, struct cv_remote_needs *ret, struct cv_why *why) {
  struct cv_pg_uri uri;
  const char *files[CV_PG_URI_FILES];
  CV_TRY(cv_pg_uri_parse(store, &uri, why));
  *ret = (struct cv_remote_needs){.dials = uri.addresses, .reads = cv_pg_uri_files(&uri, files)};
  for (size_t i = 0; i < ret->dials; i++) {
    (void)snprintf(ret->dial[i], sizeof(ret->dial[i]), "%s", uri.address[i]);
  }
  for (size_t i = 0; i < ret->reads; i++) {
    (void)snprintf(ret->read[i], sizeof(ret->read[i]), "%s", files[i]);
  }
  return CV_OK;
}

static void disconnect(struct cv_remote *remote) {
  cv_pg_close(remote->pg);
  remote->pg = NULL;
  remote->is_checked = remote->in_commit = false;
  remote->view.is_connected = false;
}

static void close_all(struct cv_remote *remote) {
  if (remote == NULL) {
    return;
  }
  disconnect(remote);
  cv_postgres_keys_forget(remote);
  cv_term_fini(&remote->term);
  cv_mac_free(remote->mac);
  cv_pg_array_fini(&remote->group.campaign);
  cv_pg_array_fini(&remote->group.number);
  cv_pg_array_fini(&remote->group.value);
  cv_pg_array_fini(&remote->group.extra);
  cv_buf_fini(&remote->scratch);
  PQclear(remote->fence);
  PQclear(remote->replica);
  cv_ring_fini(&remote->ring);
  free(remote->name);
  free(remote->address);
  free(remote);
}

/* Copies of what the configuration only lends. */
static enum cv_err copy_config(struct cv_remote *remote, const struct cv_remote_config *config, struct cv_why *why) {
  remote->replicated = config->replicated;
  remote->name = strdup(config->name);
  remote->address = strdup(config->address);
  return remote->name != NULL && remote->address != NULL &&
                 cv_ring_copy(config->ring, config->ring->n, &remote->ring) == CV_OK
             ? CV_OK
             : cv_fail(why, CV_ERR_NOMEM, "out of memory");
}

static enum cv_err open_remote(const struct cv_remote_config *config, struct cv_remote **ret, struct cv_why *why) {
  struct cv_remote *remote = calloc(1, sizeof(*remote));
  if (remote == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  remote->term = (struct cv_term){.ops = &term_ops, .data = remote};
  enum cv_err err = copy_config(remote, config, why);
  err = err == CV_OK ? cv_pg_uri_parse(config->store, &remote->uri, why) : err;
  err = err == CV_OK ? cv_anchor_open(config->anchor, &remote->term.anchor, &remote->term.has_anchor,
                                      &remote->term.anchored, why)
                     : err;
  if (err == CV_OK && remote->term.has_anchor && is_zero(&remote->term.anchored)) {
    err = cv_fail(why, CV_ERR_DAMAGED, "%s: anchor of a database in a file; expected that of %s/%s", config->anchor,
                  remote->uri.address[0], remote->uri.database);
  }
  if (err != CV_OK) {
    close_all(remote);
    return err;
  }
  remote->view.since_ms = cv_clock_wall_ms();
  *ret = remote;
  return CV_OK;
}

/* ---- connecting ---- */

/* What the session must not inherit from the role, the database or the server. */
static const char session[] =
    "SET search_path = ''; SET synchronous_commit = on; SET default_transaction_isolation = 'read committed';"
    "SET statement_timeout = 0; SET lock_timeout = 0; SET idle_session_timeout = 0;"
    "SET client_connection_check_interval = '1s'; SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 1;"
    "SET tcp_keepalives_count = 3; SET bytea_output = 'hex'";

static enum cv_err check_server(struct cv_remote *remote, struct cv_why *why) {
  PGresult *result = NULL;
  enum cv_err err = cv_pg_run(remote->pg,
                              "SELECT current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',"
                              " current_setting('server_version_num')::bigint, pg_is_in_recovery()",
                              NULL, &result, why);
  const char *where = cv_pg_where(remote->pg);
  if (err == CV_OK && cv_pg_int(result, 0, 2) < 150000) {
    err = cv_fail(why, CV_ERR_VERSION, "%s: server version %llu; expected 15 or later", where,
                  (unsigned long long)cv_pg_int(result, 0, 2) / 10000);
  } else if (err == CV_OK && cv_pg_int(result, 0, 3) != 0) {
    err = cv_fail(why, CV_ERR_STATE, "%s: a replica that only reads; expected the primary server", where);
  } else if (err == CV_OK && (cv_pg_int(result, 0, 0) == 0 || cv_pg_int(result, 0, 1) == 0)) {
    err = cv_fail(why, CV_ERR_STATE, "%s: %s is off; expected on: a crash of the server would lose what it has stored",
                  where, cv_pg_int(result, 0, 0) == 0 ? "fsync" : "full_page_writes");
  }
  PQclear(result);
  return err;
}

/* Opens the vault on the keys as they are now, and the key of the rows' codes. A new database has no keys. */
static enum cv_err open_vault(void *data, struct cv_why *why) {
  struct cv_remote *remote = data;
  struct cv_key key;
  cv_vault_free(remote->term.vault);
  remote->term.vault = NULL;
  cv_mac_free(remote->mac);
  remote->mac = NULL;
  CV_TRY(cv_postgres_keys_load(remote, why));
  if (cv_vault_new(&remote->ring, &remote->term.vault) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  CV_TRY(cv_vault_open(remote->term.vault, cv_postgres_keys(remote), remote->term.mark.database, why));
  if (remote->term.is_new) {
    return CV_OK;
  }
  CV_TRY(cv_vault_key(remote->term.vault, 0, CV_VAULT_ROWS, &key, why));
  enum cv_err err = cv_mac_new(&key, &remote->mac);
  cv_key_wipe(&key);
  return err == CV_OK ? err : cv_fail(why, err, "%s", cv_err_text(err));
}

/* ---- what the database says ---- */

static enum cv_err damaged(const struct cv_remote *remote, const char *what, struct cv_why *why) {
  return cv_fail(why, CV_ERR_DAMAGED, "%s: %s is not as it was stored", cv_pg_where(remote->pg), what);
}

static const char read_meta[] =
    "SELECT store, term, last_commit, last_hash, prior_hash, campaigns, releases, tokens, promised_micro, code,"
    " coalesce(disputed, '') FROM crowdveil.meta";

/* The database's mark; the code is checked once its key is known. */
static enum cv_err take_meta(struct cv_remote *remote, const PGresult *result, struct cv_why *why) {
  struct cv_anchor_mark mark = {.commit = 0};
  uint8_t stored[CV_POSTGRES_CODE_BYTES], code[CV_POSTGRES_CODE_BYTES];
  remote->term.is_new = PQntuples(result) == 0;
  if (remote->term.is_new) {
    return CV_OK;
  }
  if (!cv_pg_copy(result, 0, 0, mark.database, sizeof(mark.database)) ||
      !cv_pg_copy(result, 0, 3, mark.hash.bytes, sizeof(mark.hash.bytes)) ||
      !cv_pg_copy(result, 0, 4, remote->term.prior.bytes, sizeof(remote->term.prior.bytes)) ||
      !cv_pg_copy(result, 0, 9, stored, sizeof(stored))) {
    return damaged(remote, "crowdveil.meta", why);
  }
  mark.term = cv_pg_int(result, 0, 1);
  mark.commit = cv_pg_int(result, 0, 2);
  mark.totals = (struct cv_totals){.campaigns = cv_pg_int(result, 0, 5),
                                   .releases = cv_pg_int(result, 0, 6),
                                   .tokens = cv_pg_int(result, 0, 7),
                                   .promised_micro = cv_pg_int(result, 0, 8)};
  const struct cv_lineage_term *term = cv_lineage_find(&remote->term.lineage, mark.term);
  if (term != NULL) {
    memcpy(mark.term_id, term->id, sizeof(mark.term_id));
  }
  remote->term.mark = mark;
  size_t n;
  const char *disputed = (const char *)cv_pg_bytes(result, 0, 10, &n);
  (void)snprintf(remote->term.disputed, sizeof(remote->term.disputed), "%.*s", (int)n, disputed);
  if (remote->mac == NULL) {
    return CV_OK;
  }
  return cv_postgres_mark_code(remote, &mark, code) == CV_OK && memcmp(code, stored, sizeof(code)) == 0
             ? CV_OK
             : damaged(remote, "crowdveil.meta", why);
}

/* The term's row as its code covers it. */
static void term_bytes(const struct cv_lineage_term *item, uint64_t system_id, uint64_t timeline, struct cv_buf *out) {
  cv_buf_put(out, item->id, sizeof(item->id));
  cv_buf_put_u64(out, item->commit_before);
  cv_buf_put(out, item->hash_before.bytes, sizeof(item->hash_before.bytes));
  cv_buf_put_u64(out, system_id);
  cv_buf_put_u64(out, timeline);
}

enum { TERM_BYTES = CV_TERM_ID_BYTES + CV_DIGEST_BYTES + 3 * 8 };

static enum cv_err term_code(struct cv_remote *remote, const struct cv_lineage_term *item, uint64_t system_id,
                             uint64_t timeline, uint8_t ret[CV_POSTGRES_CODE_BYTES]) {
  uint8_t bytes[TERM_BYTES];
  struct cv_buf out = {.data = bytes, .cap = sizeof(bytes)};
  term_bytes(item, system_id, timeline, &out);
  return cv_postgres_code(remote, CV_POSTGRES_TERM, 0, item->number, bytes, out.len, ret);
}

static const char read_terms[] =
    "SELECT number, id, commit_before, hash_before, system_id, timeline, code, holder, address FROM crowdveil.term"
    " WHERE number > $1 ORDER BY number";

static enum cv_err take_term(struct cv_remote *remote, const PGresult *result, int i, struct cv_why *why) {
  struct cv_lineage_term item = {.number = cv_pg_int(result, i, 0), .commit_before = cv_pg_int(result, i, 2)};
  if (!cv_pg_copy(result, i, 1, item.id, sizeof(item.id)) ||
      !cv_pg_copy(result, i, 3, item.hash_before.bytes, sizeof(item.hash_before.bytes))) {
    return damaged(remote, "crowdveil.term", why);
  }
  enum cv_err err = cv_lineage_add(&remote->term.lineage, &item);
  size_t holder_n, address_n;
  const char *holder = (const char *)cv_pg_bytes(result, i, 7, &holder_n);
  const char *address = (const char *)cv_pg_bytes(result, i, 8, &address_n);
  if (err == CV_OK && (strlen(remote->name) != holder_n || memcmp(remote->name, holder, holder_n) != 0)) {
    return cv_fail(why, CV_ERR_DENIED, "%s: the database of broker %.*s; this one is %s", cv_pg_where(remote->pg),
                   (int)(holder_n < 80 ? holder_n : 80), holder, remote->name);
  }
  (void)snprintf(remote->view.holder, sizeof(remote->view.holder), "%.*s at %.*s", (int)holder_n, holder,
                 (int)address_n, address);
  return err == CV_OK ? err : damaged(remote, "crowdveil.term", why);
}

/* Reads the terms that are not known yet. */
static enum cv_err read_history(struct cv_remote *remote, struct cv_why *why) {
  struct cv_pg_args args = {.n = 0};
  PGresult *result = NULL;
  cv_pg_arg_int(&args, remote->term.lineage.n == 0 ? 0 : remote->term.lineage.item[remote->term.lineage.n - 1].number);
  enum cv_err err = cv_pg_read(remote->pg, read_terms, &args, &result, why);
  for (int i = 0; err == CV_OK && i < PQntuples(result); i++) {
    err = take_term(remote, result, i, why);
  }
  PQclear(result);
  return err;
}

static enum cv_err read_mark(struct cv_remote *remote, struct cv_why *why) {
  PGresult *result = NULL;
  enum cv_err err = cv_pg_run(remote->pg, read_meta, NULL, &result, why);
  err = err == CV_OK ? take_meta(remote, result, why) : err;
  PQclear(result);
  return err;
}

/* Checks the codes of all terms. */
static enum cv_err check_terms(struct cv_remote *remote, struct cv_why *why) {
  struct cv_pg_args args = {.n = 0};
  PGresult *result = NULL;
  cv_pg_arg_int(&args, 0);
  enum cv_err err = cv_pg_read(remote->pg, read_terms, &args, &result, why);
  for (int i = 0; err == CV_OK && i < PQntuples(result); i++) {
    const struct cv_lineage_term *item = cv_lineage_find(&remote->term.lineage, cv_pg_int(result, i, 0));
    uint8_t stored[CV_POSTGRES_CODE_BYTES], code[CV_POSTGRES_CODE_BYTES];
    bool fits = item != NULL && cv_pg_copy(result, i, 6, stored, sizeof(stored)) &&
                term_code(remote, item, cv_pg_int(result, i, 4), cv_pg_int(result, i, 5), code) == CV_OK &&
                memcmp(stored, code, sizeof(code)) == 0;
    err = fits ? CV_OK : damaged(remote, "crowdveil.term", why);
  }
  PQclear(result);
  return err;
}

/* What is read between these two is of one moment. */
static const char snapshot[] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", snapshot_end[] = "COMMIT";

static enum cv_err read_state(void *data, struct cv_why *why) {
  struct cv_remote *remote = data;
  CV_TRY(cv_pg_queue(remote->pg, snapshot, NULL, NULL, why));
  CV_TRY(read_history(remote, why));
  CV_TRY(read_mark(remote, why));
  CV_TRY(cv_pg_run(remote->pg, snapshot_end, NULL, NULL, why));
  return !remote->term.is_new && remote->mac == NULL ? open_vault(remote, why) : CV_OK;
}

static enum cv_err connect_to(struct cv_remote *remote, struct cv_why *why) {
  char name[64];
  (void)snprintf(name, sizeof(name), "crowdveil-broker %.40s", remote->name);
  CV_TRY(cv_pg_open(&remote->uri, name, TIMEOUT_MS, &remote->pg, why));
  CV_TRY(cv_pg_script(remote->pg, session, why));
  CV_TRY(check_server(remote, why));
  CV_TRY(cv_postgres_schema_check(remote->pg, why));
  cv_lineage_fini(&remote->term.lineage);
  /* The first time without the key of the codes, which is found by the database's id. */
  cv_mac_free(remote->mac);
  remote->mac = NULL;
  CV_TRY(cv_pg_queue(remote->pg, snapshot, NULL, NULL, why));
  CV_TRY(read_history(remote, why));
  CV_TRY(read_mark(remote, why));
  CV_TRY(open_vault(remote, why));
  CV_TRY(read_mark(remote, why));
  CV_TRY(remote->term.is_new ? CV_OK : check_terms(remote, why));
  CV_TRY(cv_pg_run(remote->pg, snapshot_end, NULL, NULL, why));
  CV_TRY(remote->term.is_new ? CV_OK : cv_postgres_taken_load(remote, why));
  remote->is_checked = remote->view.is_connected = true;
  return CV_OK;
}

/* Tells every broker, and stops the active one at its next commit. */
static enum cv_err dispute(void *data, const char *text, struct cv_why *why) {
  struct cv_remote *remote = data;
  struct cv_pg_args args = {.n = 0};
  char line[160];
  (void)snprintf(line, sizeof(line), "%s of %s", text, remote->address);
  cv_pg_arg_text(&args, line);
  /* Not of a later term: that of a recovery may have taken this anchor in. */
  cv_pg_arg_int(&args, remote->term.mark.term);
  CV_TRY(cv_pg_run(remote->pg, "UPDATE crowdveil.meta SET disputed = $1 WHERE disputed IS NULL AND term = $2", &args,
                   NULL, why));
  (void)snprintf(remote->term.disputed, sizeof(remote->term.disputed), "%s", line);
  return CV_OK;
}

/* ---- the holder ---- */

static const char read_holder[] =
    "SELECT a.pid, (extract(epoch FROM a.backend_start) * 1000000)::bigint,"
    " (extract(epoch FROM a.state_change) * 1000000)::bigint, coalesce(a.wait_event, '') = 'SyncRep'"
    " FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a USING (pid)"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
    " AND (l.classid::bigint << 32 | l.objid::bigint) = " CV_POSTGRES_LOCK
    " AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())";

static const char terminate[] =
    "SELECT pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity"
    " WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000)::bigint = $2"
    " AND (extract(epoch FROM state_change) * 1000000)::bigint = $3 AND coalesce(wait_event, '') <> 'SyncRep'";

/* Ends the session of a holder that has stood still for too long, by this broker's own clock. One that waits for its
 * replica is spared, as its commit would become visible without one, and may wait in vain: CV_ERR_STATE, so that this
 * broker says so and connects anew, perhaps to another server. */
static enum cv_err watch_holder(struct cv_remote *remote, const PGresult *result, struct cv_why *why) {
  uint64_t now_ms = cv_clock_mono_ms();
  if (PQntuples(result) == 0) {
    remote->holder_pid = 0;
    return CV_OK;
  }
  uint64_t pid = cv_pg_int(result, 0, 0), backend = cv_pg_int(result, 0, 1), state = cv_pg_int(result, 0, 2);
  bool is_same = pid == remote->holder_pid && backend == remote->holder_backend && state == remote->holder_state;
  bool waits = cv_pg_int(result, 0, 3) != 0;
  if (!is_same || !waits) {
    remote->waits_since_ms = now_ms;
  }
  if (!is_same || waits) {
    remote->holder_pid = pid;
    remote->holder_backend = backend;
    remote->holder_state = state;
    remote->still_since_ms = now_ms;
    return now_ms - remote->waits_since_ms < STILL_MS
               ? CV_OK
               : cv_fail(why, CV_ERR_STATE, "%s: the last commit waits for a synchronous replica; expected one",
                         cv_pg_where(remote->pg));
  }
  if (now_ms - remote->still_since_ms < STILL_MS) {
    return CV_OK;
  }
  struct cv_pg_args args = {.n = 0};
  cv_pg_arg_int(&args, pid);
  cv_pg_arg_int(&args, backend);
  cv_pg_arg_int(&args, state);
  remote->still_since_ms = now_ms;
  return cv_pg_run(remote->pg, terminate, &args, NULL, why);
}

static enum cv_err see_holder(void *data, bool *ret_is_held, struct cv_why *why) {
  struct cv_remote *remote = data;
  PGresult *result = NULL;
  enum cv_err err = cv_pg_run(remote->pg, read_holder, NULL, &result, why);
  err = err == CV_OK ? watch_holder(remote, result, why) : err;
  PQclear(result);
  *ret_is_held = remote->holder_pid != 0;
  return err;
}

/* ---- taking the term ---- */

/* What the server says of itself, and an id for the term that nobody else can have drawn. */
static enum cv_err read_origin(struct cv_remote *remote, uint8_t ret_id[CV_TERM_ID_BYTES], struct cv_why *why) {
  PGresult *result = NULL;
  enum cv_err err = cv_pg_run(remote->pg,
                              "SELECT uuid_send(gen_random_uuid()), system_identifier,"
                              " ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint"
                              " FROM pg_control_system()",
                              NULL, &result, why);
  if (err == CV_OK) {
    bool is_whole = cv_pg_copy(result, 0, 0, ret_id, CV_TERM_ID_BYTES);
    remote->system_id = cv_pg_int(result, 0, 1);
    remote->timeline = cv_pg_int(result, 0, 2);
    err = is_whole ? CV_OK : damaged(remote, "the server's identity", why);
  }
  PQclear(result);
  return err;
}

/* Whether the server is not that of the last term. */
static enum cv_err read_moved(struct cv_remote *remote, bool *ret, struct cv_why *why) {
  PGresult *result = NULL;
  *ret = false;
  if (remote->term.lineage.n == 0) {
    return CV_OK;
  }
  enum cv_err err = cv_pg_run(remote->pg, "SELECT system_id, timeline FROM crowdveil.term ORDER BY number DESC LIMIT 1",
                              NULL, &result, why);
  *ret = err == CV_OK && (PQntuples(result) != 1 || cv_pg_int(result, 0, 0) != remote->system_id ||
                          cv_pg_int(result, 0, 1) != remote->timeline);
  PQclear(result);
  return err;
}

/* Without a replica another server, or one that was promoted or restored, may lack what this one has said. */
static enum cv_err check_origin(struct cv_remote *remote, struct cv_why *why) {
  bool is_moved = false;
  CV_TRY(remote->replicated || remote->term.recovers ? CV_OK : read_moved(remote, &is_moved, why));
  return !is_moved ? CV_OK
                   : cv_fail(why, CV_ERR_DAMAGED,
                             "%s: another server, or a promoted or restored one, and store_durability is one-server; "
                             "expected the server of before",
                             cv_pg_where(remote->pg));
}

/* Identity and keys of a new database. */
static enum cv_err make_store(void *data, struct cv_why *why) {
  struct cv_remote *remote = data;
  struct cv_pg_args args = {.n = 0};
  uint8_t code[CV_POSTGRES_CODE_BYTES] = {0};
  struct cv_key key;
  CV_TRY(cv_meta_new("broker", &remote->term.mark, why));
  cv_vault_free(remote->term.vault);
  remote->term.vault = NULL;
  if (cv_vault_new(&remote->ring, &remote->term.vault) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  CV_TRY(cv_vault_open(remote->term.vault, cv_postgres_keys(remote), remote->term.mark.database, why));
  CV_TRY(cv_pg_queue(remote->pg, "BEGIN ISOLATION LEVEL READ COMMITTED", NULL, NULL, why));
  CV_TRY(cv_vault_begin(remote->term.vault, why));
  CV_TRY(cv_vault_key(remote->term.vault, 0, CV_VAULT_ROWS, &key, why));
  enum cv_err err = cv_mac_new(&key, &remote->mac);
  cv_key_wipe(&key);
  if (err != CV_OK || cv_postgres_mark_code(remote, &remote->term.mark, code) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  cv_pg_arg_bytes(&args, remote->term.mark.database, sizeof(remote->term.mark.database));
  cv_pg_arg_bytes(&args, remote->term.mark.hash.bytes, sizeof(remote->term.mark.hash.bytes));
  cv_pg_arg_bytes(&args, code, sizeof(code));
  CV_TRY(cv_pg_queue(remote->pg, "INSERT INTO crowdveil.meta VALUES (1, $1, 0, 0, $2, $2, 0, 0, 0, 0, $3, NULL)", &args,
                     NULL, why));
  CV_TRY(cv_pg_queue(remote->pg, "COMMIT", NULL, NULL, why));
  CV_TRY(cv_pg_wait(remote->pg, why));
  remote->term.is_new = false;
  remote->term.prior = remote->term.mark.hash;
  return CV_OK;
}

/* From a term's beginning on, and while its state is loaded, the server ends a session that stands still. */
static enum cv_err limit_session(const struct cv_remote *remote, struct cv_why *why) {
  static const char limits[] = "SET idle_session_timeout = '2s'; SET idle_in_transaction_session_timeout = '5s'";
  /* The server knows nothing of a test's clock: it would end a session to which that gave no time. */
  return cv_clock_is_followed() ? CV_OK : cv_pg_script(remote->pg, limits, why);
}

/* Raises the term in the row of the fence, and adds it to the history, in one commit. */
static enum cv_err begin_term(void *data, const uint8_t id[CV_TERM_ID_BYTES], struct cv_why *why) {
  struct cv_remote *remote = data;
  struct cv_anchor_mark mark = remote->term.mark;
  struct cv_lineage_term item = {.number = mark.term + 1, .commit_before = mark.commit, .hash_before = mark.hash};
  uint8_t code[CV_POSTGRES_CODE_BYTES], mark_code[CV_POSTGRES_CODE_BYTES];
  struct cv_pg_args raise = {.n = 0}, args = {.n = 0};
  memcpy(item.id, id, sizeof(item.id));
  mark.term = item.number;
  memcpy(mark.term_id, item.id, sizeof(mark.term_id));
  if (term_code(remote, &item, remote->system_id, remote->timeline, code) != CV_OK ||
      cv_postgres_mark_code(remote, &mark, mark_code) != CV_OK ||
      cv_lineage_add(&remote->term.lineage, &item) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  cv_pg_arg_int(&raise, item.number - 1);
  cv_pg_arg_int(&raise, mark.commit);
  cv_pg_arg_int(&raise, item.number);
  cv_pg_arg_bytes(&raise, mark_code, sizeof(mark_code));
  cv_pg_arg_int(&raise, remote->term.recovers);
  CV_TRY(cv_pg_queue(remote->pg, "BEGIN ISOLATION LEVEL READ COMMITTED", NULL, NULL, why));
  CV_TRY(cv_pg_queue(remote->pg,
                     "UPDATE crowdveil.meta SET code = $4, term = CASE WHEN term = $1 AND last_commit = $2"
                     " AND (disputed IS NULL OR $5 = 1) THEN $3 END",
                     &raise, NULL, why));
  cv_pg_arg_int(&args, item.number);
  cv_pg_arg_bytes(&args, item.id, sizeof(item.id));
  cv_pg_arg_text(&args, remote->name);
  cv_pg_arg_text(&args, remote->address);
  cv_pg_arg_int(&args, item.commit_before);
  cv_pg_arg_int(&args, item.commit_before + 1);
  cv_pg_arg_bytes(&args, item.hash_before.bytes, sizeof(item.hash_before.bytes));
  cv_pg_arg_int(&args, remote->system_id);
  cv_pg_arg_int(&args, remote->timeline);
  cv_pg_arg_bytes(&args, code, sizeof(code));
  CV_TRY(cv_pg_queue(remote->pg, "INSERT INTO crowdveil.term VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", &args,
                     NULL, why));
  CV_TRY(cv_pg_queue(remote->pg, "COMMIT", NULL, NULL, why));
  CV_TRY(cv_pg_wait(remote->pg, why));
  remote->term.mark = mark;
  return limit_session(remote, why);
}

static enum cv_err draw(void *data, uint8_t ret_id[CV_TERM_ID_BYTES], struct cv_why *why) {
  CV_TRY(read_origin(data, ret_id, why));
  return check_origin(data, why);
}

static enum cv_err try_lock(void *data, bool *ret_is_ours, struct cv_why *why) {
  struct cv_remote *remote = data;
  return cv_postgres_try_lock(remote->pg, ret_is_ours, why);
}

static enum cv_err touch(void *data, struct cv_why *why) {
  return cv_postgres_touch(data, why);
}

static const char *where(void *data) {
  const struct cv_remote *remote = data;
  return cv_pg_where(remote->pg);
}

static const struct cv_term_ops term_ops = {.read = read_state,
                                            .open_vault = open_vault,
                                            .see_holder = see_holder,
                                            .try_lock = try_lock,
                                            .dispute = dispute,
                                            .make = make_store,
                                            .draw = draw,
                                            .touch = touch,
                                            .begin = begin_term,
                                            .where = where};

static void look(struct cv_remote *remote) {
  struct cv_remote_view *view = &remote->view;
  view->term = remote->term.mark.term;
  view->commit = remote->term.mark.commit;
  view->has_anchor = remote->term.has_anchor;
  (void)snprintf(view->disputed, sizeof(view->disputed), "%s", remote->term.disputed);
  view->anchor_commit = remote->term.anchored.commit;
}

static enum cv_err step(struct cv_remote *remote, bool *ret_taken, unsigned *ret_rest_ms, struct cv_why *why) {
  bool is_ours = false;
  *ret_taken = false;
  *ret_rest_ms = POLL_MS;
  enum cv_err err = remote->is_checked ? CV_OK : connect_to(remote, why);
  err = err == CV_OK ? cv_term_stand_by(&remote->term, &is_ours, why) : err;
  err = err == CV_OK && is_ours ? cv_term_take(&remote->term, why) : err;
  look(remote);
  if (err != CV_OK) {
    /* A closed session has no lock: another broker can try. */
    *ret_rest_ms = err == CV_ERR_DAMAGED || err == CV_ERR_VERSION ? REST_MS : RETRY_MS;
    disconnect(remote);
    return err;
  }
  if (is_ours) {
    remote->view.is_active = true;
    remote->view.since_ms = cv_clock_wall_ms();
    (void)snprintf(remote->view.holder, sizeof(remote->view.holder), "%s at %s", remote->name, remote->address);
  }
  *ret_taken = is_ours;
  return CV_OK;
}

/* ---- an operator ---- */

/* This broker's own anchor and those of the work. */
static enum cv_err read_anchors(const struct cv_remote *remote, const struct cv_remote_work *work,
                                struct cv_anchor_mark to[CV_ANCHORS_MAX + 1], size_t *ret_n, struct cv_why *why) {
  size_t n = 0;
  if (work->anchors > CV_ANCHORS_MAX) {
    return cv_fail(why, CV_ERR_INVALID, "%zu anchors; expected at most %d", work->anchors, CV_ANCHORS_MAX);
  }
  if (remote->term.has_anchor) {
    to[n++] = remote->term.anchored;
  }
  for (size_t i = 0; i < work->anchors; i++) {
    bool exists = false;
    CV_TRY(cv_anchor_peek(work->anchor[i], &exists, &to[n], why));
    if (!exists || is_zero(&to[n])) {
      return cv_fail(why, CV_ERR_NOT_FOUND, "%s: %s; expected the anchor of a broker of this store", work->anchor[i],
                     exists ? "an anchor of a database in a file" : "no anchor");
    }
    n++;
  }
  *ret_n = n;
  return CV_OK;
}

/* The lock is ours. */
static enum cv_err prepare(struct cv_remote *remote, const struct cv_remote_work *work, struct cv_store_marks *ret,
                           struct cv_why *why) {
  struct cv_anchor_mark anchor[CV_ANCHORS_MAX + 1];
  uint8_t unused[CV_TERM_ID_BYTES];
  size_t anchors;
  bool is_moved = false;
  CV_TRY(read_state(remote, why));
  CV_TRY(read_anchors(remote, work, anchor, &anchors, why));
  if (remote->term.is_new && !(work->task == CV_REMOTE_RECOVER && work->lost)) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: no broker has begun a term yet; expected a database in use%s",
                   cv_pg_where(remote->pg),
                   work->task == CV_REMOTE_RECOVER ? ", or its loss accepted with --lost" : "");
  }
  if (work->task == CV_REMOTE_RECOVER) {
    CV_TRY(read_origin(remote, unused, why));
    CV_TRY(read_moved(remote, &is_moved, why));
  }
  CV_TRY(cv_term_weigh(&remote->term, anchor, anchors, is_moved, work->lost, ret, why));
  if (work->task != CV_REMOTE_RECOVER) {
    return open_vault(remote, why);
  }
  /* A broker whose anchor is not among those that were given would stop the next one. */
  if (ret->takens == 0 && ret->is_anchored && remote->term.disputed[0] != '\0') {
    return cv_fail(why, CV_ERR_DAMAGED, "%s: disputed: %.150s; expected the anchor of that broker, too (--anchor)",
                   cv_pg_where(remote->pg), remote->term.disputed);
  }
  remote->term.recovers = true;
  return cv_term_take(&remote->term, why);
}

static enum cv_err work(struct cv_remote *remote, const struct cv_remote_work *work, struct cv_store_marks *ret,
                        struct cv_why *why) {
  enum cv_err err = connect_to(remote, why);
  err = err == CV_OK ? cv_postgres_lock(remote->pg, why) : err;
  err = err == CV_OK ? prepare(remote, work, ret, why) : err;
  look(remote);
  if (err != CV_OK) {
    disconnect(remote);
  }
  return err;
}

/* ---- the active broker ---- */

static enum cv_err store(struct cv_remote *remote, struct cv_broker_store **ret, struct cv_why *why) {
  const struct cv_backend backend = cv_postgres_backend(remote);
  return cv_broker_store_over(&backend, &remote->term.mark, remote->term.vault, remote->term.anchor, ret, why);
}

static enum cv_err beat(struct cv_remote *remote, struct cv_why *why) {
  return cv_postgres_touch(remote, why);
}

static void leave(struct cv_remote *remote) {
  disconnect(remote);
  remote->view.is_active = false;
}

static void view(const struct cv_remote *remote, struct cv_remote_view *ret) {
  *ret = remote->view;
  if (ret->is_active) { /* the store writes the anchor after each commit */
    ret->commit = ret->anchor_commit = remote->term.mark.commit;
  }
}

static enum cv_err migrate(const char *owner, const char *used, bool *ret_is_new, struct cv_why *ret_done,
                           struct cv_why *why) {
  struct cv_pg_uri uri, user;
  struct cv_pg *pg;
  unsigned from;
  CV_TRY(cv_pg_uri_parse(used, &user, why));
  CV_TRY(cv_pg_uri_parse(owner, &uri, why));
  CV_TRY(cv_pg_open(&uri, "crowdveil store migrate", MIGRATE_MS, &pg, why));
  enum cv_err err = cv_postgres_schema_migrate(pg, user.user, &from, why);
  if (err == CV_OK) {
    *ret_is_new = from == 0;
    cv_why_set(ret_done, "%s: tables of version %d for role %s; before: %u", cv_pg_where(pg), CV_POSTGRES_SCHEMA,
               user.user, from);
  }
  cv_pg_close(pg);
  return err;
}

const struct cv_remote_ops cv_postgres = {.check = check_uri,
                                          .open = open_remote,
                                          .step = step,
                                          .work = work,
                                          .store = store,
                                          .beat = beat,
                                          .leave = leave,
                                          .view = view,
                                          .migrate = migrate,
                                          .close = close_all};
