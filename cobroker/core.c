/* SPDX-License-Identifier: Apache-2.0 */
/* The core as a whole: connections, time, and the steps from events to a batch and from a stored batch to outputs. */
#include "cobroker/core.h"

#include "common/base/fingerprint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cobroker/campaign.h"
#include "cobroker/conn.h"
#include "cobroker/ending.h"
#include "cobroker/frames.h"
#include "cobroker/image.h"
#include "cobroker/session.h"
#include "cobroker/state.h"
#include "cobroker/talk.h"

enum {
  ACCOUNT_CHUNKS = 65536, /* of the table of workers' accounts: 64 million workers */
  SWEEP_MS = 10000,       /* between two searches for sessions whose certificate has ended */
  CROWD_SHARE = 64,       /* answers to a worker's connection between two flushes */
  BROKER_SHARE = 65536,   /* tokens of the broker between two flushes */
};

enum cv_err cv_cobroker_new(const struct cv_cobroker_config *config, struct cv_cobroker **ret) {
  struct cv_cobroker *core = calloc(1, sizeof(*core));
  if (core == NULL) {
    return CV_ERR_NOMEM;
  }
  core->config = *config;
  if (config->journal_bytes == 0) {
    core->config.journal_bytes = CV_COBROKER_JOURNAL_BYTES;
  }
  core->commit = 1;
  core->quiet = true; /* until restored: see cv_cobroker_restore_end() */
  cv_chunks_init(&core->accounts.cells, ACCOUNT_CHUNKS);
  *ret = core;
  return CV_OK;
}

static void conn_free(struct cv_cobroker_conn *conn) {
  cv_cobroker_outbox_fini(&conn->gather);
  cv_cobroker_outbox_fini(&conn->ready);
  free(conn->entered);
  free(conn);
}

void cv_cobroker_free(struct cv_cobroker *core) {
  if (core == NULL) {
    return;
  }
  while (core->conns != NULL) {
    struct cv_cobroker_conn *conn = core->conns;
    core->conns = conn->next;
    conn_free(conn);
  }
  cv_cobroker_sessions_free(core);
  CV_TABLE_DRAIN(core->campaigns, cv_cobroker_campaign_free);
  cv_cobroker_archive_fini(&core->archive);
  cv_chunks_fini(&core->accounts.cells);
  free(core->dirt.at);
  free(core);
}

/* ---- connections ---- */

static bool is_crowd(const struct cv_identity *identity) {
  return identity->role == CV_ROLE_WORKER || identity->role == CV_ROLE_GATEWAY;
}

/* Schedules a goodbye; the shell closes the connection after the frame is sent. */
static void say_goodbye(struct cv_cobroker *core, struct cv_cobroker_conn *conn, const char *why) {
  (void)snprintf(conn->goodbye, sizeof(conn->goodbye), "%s", why);
  conn->close_due = true;
  core->said = true;
}

static bool is_same(const struct cv_identity *a, const struct cv_identity *b) {
  return a->role == b->role && strcmp(a->name, b->name) == 0;
}

static enum cv_err check_identity(const struct cv_cobroker *core, const struct cv_identity *identity,
                                  struct cv_why *why) {
  const struct cv_cobroker_config *config = &core->config;
  if (is_crowd(identity)) {
    return identity->last < CV_WORKER_ID_END ? CV_OK
                                             : cv_fail(why, CV_ERR_DENIED, "worker %llu; expected ids below 2^48",
                                                       (unsigned long long)identity->last);
  }
  if (identity->role != CV_ROLE_BROKER || strcmp(identity->name, config->broker) != 0) {
    return cv_fail(why, CV_ERR_DENIED, "%s/%s; expected broker/%s", cv_role_text(identity->role), identity->name,
                   config->broker);
  }
  /* Whoever the certificates' authority is: another key is another party. */
  return cv_digest_is_same(&identity->key, &config->duo.broker)
             ? CV_OK
             : cv_fail(why, CV_ERR_DENIED, "broker/%s has another key than the one that is configured", identity->name);
}

/* Whether the identity may connect now; says goodbye to an older connection of the same certificate. */
static enum cv_err check_join(struct cv_cobroker *core, const struct cv_identity *identity, struct cv_why *why) {
  CV_TRY(check_identity(core, identity, why));
  for (struct cv_cobroker_conn *conn = core->conns; conn != NULL; conn = conn->next) {
    if (conn->close_due) {
      continue;
    }
    if (is_same(&conn->identity, identity)) {
      say_goodbye(core, conn, "replaced by a newer connection of the same certificate");
    } else if (is_crowd(identity) && is_crowd(&conn->identity) && cv_identity_overlaps(identity, &conn->identity)) {
      return cv_fail(why, CV_ERR_EXISTS,
                     "workers of %s overlap those of %s, which is connected; expected disjoint ranges", identity->name,
                     conn->identity.name);
    }
  }
  return CV_OK;
}

/* The newest connection of the broker counts; it has to open every campaign again. */
static void take_broker(struct cv_cobroker *core, struct cv_cobroker_conn *conn) {
  core->broker = conn;
  for (struct cv_cobroker_campaign *each = core->campaigns; each != NULL; each = each->hh.next) {
    each->told = false;
  }
}

enum cv_err cv_cobroker_join(struct cv_cobroker *core, const struct cv_identity *identity, void *shell,
                             struct cv_cobroker_conn **ret, struct cv_why *why) {
  CV_TRY(cv_unless_failed(&core->failed, check_join(core, identity, why), why));
  struct cv_cobroker_conn *conn = calloc(1, sizeof(*conn));
  if (conn == NULL) {
    return cv_unless_failed(&core->failed, CV_ERR_NOMEM, why);
  }
  conn->identity = *identity;
  (void)snprintf(conn->who, sizeof(conn->who), "%s/%s", cv_role_text(identity->role), identity->name);
  conn->shell = shell;
  conn->next = core->conns;
  if (conn->next != NULL) {
    conn->next->prev = conn;
  }
  core->conns = conn;
  if (!is_crowd(identity)) {
    take_broker(core, conn);
  }
  *ret = conn;
  return CV_OK;
}

void cv_cobroker_leave(struct cv_cobroker *core, struct cv_cobroker_conn *conn) {
  cv_cobroker_sessions_leave(conn);
  core->broker = core->broker == conn ? NULL : core->broker;
  *(conn->prev == NULL ? &core->conns : &conn->prev->next) = conn->next;
  if (conn->next != NULL) {
    conn->next->prev = conn->prev;
  }
  core->cursor = core->cursor == conn ? conn->next : core->cursor;
  core->last_out = core->last_out == &conn->ready ? NULL : core->last_out;
  conn_free(conn);
}

void cv_cobroker_revoke(struct cv_cobroker *core, const struct cv_cobroker_revoked *revoked) {
  size_t ended = cv_cobroker_sessions_revoke(core, revoked);
  if (ended > 0) {
    cv_cobroker_note(core, CV_LOG_INFO, NULL, NULL, "%zu session%s ended: the certificate is revoked", ended,
                     ended == 1 ? "" : "s");
  }
}

bool cv_cobroker_renew(struct cv_cobroker *core, const struct cv_digest *key) {
  if (cv_digest_is_same(key, &core->config.duo.cobroker)) {
    return false;
  }
  core->config.duo.cobroker = *key;
  cv_cobroker_end_strangers(core);
  for (struct cv_cobroker_conn *conn = core->conns; conn != NULL; conn = conn->next) {
    if (!conn->close_due) {
      say_goodbye(core, conn, "the co-broker has a new key");
    }
  }
  return true;
}

void *cv_cobroker_conn_shell(const struct cv_cobroker_conn *conn) {
  return conn->shell;
}

/* ---- events ---- */

static enum cv_err on_share(struct cv_cobroker *core, struct cv_cobroker_conn *conn, const struct cv_share_frame *frame,
                            struct cv_why *why) {
  if (conn->close_due) { /* replaced: what it says now is about what the newer connection has begun anew */
    return CV_OK;
  }
  return is_crowd(&conn->identity) ? cv_cobroker_crowd_frame(core, conn, frame, why)
                                   : cv_cobroker_broker_frame(core, conn, frame, why);
}

enum cv_err cv_cobroker_on_share(struct cv_cobroker *core, struct cv_cobroker_conn *conn,
                                 const struct cv_share_frame *frame, uint64_t now_ms, uint64_t wall_ms,
                                 struct cv_why *why) {
  /* After memory ran out a change may be half made: no event may build on it, and no batch may store it. */
  CV_TRY(cv_unless_failed(&core->failed, CV_OK, why));
  core->now_ms = now_ms;
  core->wall_ms = wall_ms;
  return cv_unless_failed(&core->failed, on_share(core, conn, frame, why), why);
}

void cv_cobroker_tick(struct cv_cobroker *core, uint64_t now_ms, uint64_t wall_ms) {
  struct cv_cobroker_campaign *campaign = core->campaigns, *next;
  core->now_ms = now_ms;
  core->wall_ms = wall_ms;
  for (; campaign != NULL; campaign = next) {
    next = campaign->hh.next;
    /* The monotonic clock starts again with the machine, the wall clock can be set back: the earlier of the two
     * counts. */
    if (campaign->deadline_wall_ms != 0 && (wall_ms >= campaign->deadline_wall_ms || now_ms >= campaign->deadline_ms)) {
      cv_cobroker_end(core, campaign, CV_END_DEADLINE, "its deadline has passed");
    }
  }
  if (now_ms >= core->swept_ms + SWEEP_MS) {
    core->swept_ms = now_ms;
    cv_cobroker_sessions_expire(core);
  }
}

bool cv_cobroker_is_drained(const struct cv_cobroker *core) {
  return !core->changed && !core->in_flight;
}

/* ---- batches and outputs ---- */

size_t cv_cobroker_gathered(const struct cv_cobroker *core) {
  return core->gathered;
}

bool cv_cobroker_conn_is_over_share(const struct cv_cobroker *core, const struct cv_cobroker_conn *conn) {
  return is_crowd(&conn->identity) ? conn->gathered >= CROWD_SHARE : core->gathered >= BROKER_SHARE;
}

bool cv_cobroker_is_pending(const struct cv_cobroker *core) {
  return core->changed || core->said || core->failed;
}

static void swap(struct cv_cobroker_conn *conn) {
  if (conn->close_due) {
    conn->gather.frame.goodbye = conn->goodbye;
  }
  struct cv_cobroker_outbox out = conn->ready;
  conn->ready = conn->gather;
  conn->gather = out;
  conn->gathered = 0;
}

/* One flush: everything since the last one becomes a batch and a set of prepared outputs. */
static enum cv_err flush(struct cv_cobroker *core, struct cv_cobroker_batch *batch, bool *ret_store) {
  CV_REQUIRE(!core->in_flight);
  cv_cobroker_batch_clear(batch);
  batch->commit = core->commit;
  bool store = core->changed;
  core->said = false;
  for (struct cv_cobroker_conn *conn = core->conns; conn != NULL; conn = conn->next) {
    swap(conn);
  }
  if (store) {
    batch->totals = core->totals;
    CV_TRY(cv_cobroker_image_fill(core, batch));
    /* An incomplete batch must not be stored. */
    if (core->failed || !cv_buf_ok(&batch->bytes)) {
      return CV_ERR_NOMEM;
    }
    /* Only a batch that is stored takes a number, so that numbers of commits have no gaps. */
    core->commit++;
  }
  /* From here on events belong to the next batch. */
  core->changed = false;
  core->gathered = 0;
  core->in_flight = true;
  *ret_store = store;
  return CV_OK;
}

enum cv_err cv_cobroker_flush(struct cv_cobroker *core, uint64_t now_ms, uint64_t wall_ms,
                              struct cv_cobroker_batch *batch, bool *ret_store) {
  CV_TRY(cv_unless_failed(&core->failed, CV_OK, NULL));
  core->now_ms = now_ms;
  core->wall_ms = wall_ms;
  return cv_unless_failed(&core->failed, flush(core, batch, ret_store), NULL);
}

void cv_cobroker_stored(struct cv_cobroker *core) {
  CV_REQUIRE(core->in_flight);
  core->in_flight = false;
  core->cursor = core->conns;
}

bool cv_cobroker_next_out(struct cv_cobroker *core, struct cv_cobroker_out *ret) {
  /* The shell has encoded the frame that the last call lent it; only now may its memory be reused. */
  if (core->last_out != NULL) {
    cv_cobroker_outbox_empty(core->last_out);
    core->last_out = NULL;
  }
  while (core->cursor != NULL && !core->failed) {
    struct cv_cobroker_conn *conn = core->cursor;
    core->cursor = conn->next;
    if (!cv_cobroker_outbox_is_empty(&conn->ready.frame)) {
      *ret = (struct cv_cobroker_out){
          .conn = conn, .frame = &conn->ready.frame, .close = conn->ready.frame.goodbye != NULL};
      core->last_out = &conn->ready;
      return true;
    }
  }
  return false;
}

void cv_cobroker_figures(const struct cv_cobroker *core, struct cv_cobroker_figures *ret) {
  *ret = core->figures;
  for (const struct cv_cobroker_conn *conn = core->conns; conn != NULL; conn = conn->next) {
    ret->crowd += is_crowd(&conn->identity);
  }
  ret->campaigns = HASH_COUNT(core->campaigns);
  ret->campaigns_kept = core->archive.count;
  ret->sessions = HASH_COUNT(core->sessions);
  ret->workers_spent = core->accounts.exhausted;
  ret->broker = core->broker != NULL;
}
