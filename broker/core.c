/* SPDX-License-Identifier: Apache-2.0 */
/* The core as a whole: connections, time, and the turn from events to a batch and from a stored batch to outputs. */
#include "broker/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/state.h"

enum { RANK_ARENA_BYTES = 512 * 1024, ACCOUNT_CHUNKS = 65536 };

enum cv_err cv_broker_new(const struct cv_broker_config *config, struct cv_broker **ret) {
  struct cv_broker *broker = calloc(1, sizeof(*broker));
  if (broker == NULL) {
    return CV_ERR_NOMEM;
  }
  if (cv_arena_init(&broker->rank_arena, RANK_ARENA_BYTES) != CV_OK) {
    free(broker);
    return CV_ERR_NOMEM;
  }
  broker->config = *config;
  if (config->journal_bytes == 0) {
    broker->config.journal_bytes = CV_JOURNAL_BYTES;
  }
  broker->commit = 1;
  broker->quiet = true;
  cv_chunks_init(&broker->accounts.cells, ACCOUNT_CHUNKS);
  cv_archive_init(&broker->archive);
  *ret = broker;
  return CV_OK;
}

static void conn_free(struct cv_broker_conn *conn) {
  cv_crowd_conn_fini(conn);
  cv_order_conn_fini(conn);
  free(conn);
}

void cv_broker_free(struct cv_broker *broker) {
  if (broker == NULL) {
    return;
  }
  while (broker->conns != NULL) {
    struct cv_broker_conn *conn = broker->conns;
    broker->conns = conn->next;
    conn_free(conn);
  }
  CV_TABLE_DRAIN(broker->campaigns, cv_campaign_free);
  cv_archive_fini(&broker->archive);
  cv_chunks_fini(&broker->accounts.cells);
  cv_arena_fini(&broker->rank_arena);
  free(broker->dirty);
  free(broker);
}

enum cv_err cv_broker_unless_failed(struct cv_broker *broker, enum cv_err err, struct cv_why *why) {
  broker->failed = broker->failed || err == CV_ERR_NOMEM;
  return broker->failed ? cv_fail(why, CV_ERR_NOMEM, "out of memory") : err;
}

/* ---- connections ---- */

static bool is_crowd(const struct cv_identity *identity) {
  return identity->role == CV_ROLE_WORKER || identity->role == CV_ROLE_GATEWAY;
}

static void say_goodbye(struct cv_broker *broker, struct cv_broker_conn *conn, const char *why) {
  (void)snprintf(conn->goodbye, sizeof(conn->goodbye), "%s", why);
  conn->close_due = true;
  broker->said = true;
}

static bool is_same(const struct cv_identity *a, const struct cv_identity *b) {
  return a->role == b->role && strcmp(a->name, b->name) == 0;
}

/* A requester may have several connections, but not all there are. */
static enum cv_err check_requester(const struct cv_broker *broker, const struct cv_identity *identity,
                                   struct cv_why *why) {
  unsigned count = 0;
  for (const struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    count += is_same(&conn->identity, identity);
  }
  return count < CV_REQUESTER_CONNS ? CV_OK
                                    : cv_fail(why, CV_ERR_LIMIT, "%u connections of requester %s; expected at most %d",
                                              count + 1, identity->name, CV_REQUESTER_CONNS);
}

static enum cv_err check_join(struct cv_broker *broker, const struct cv_identity *identity, struct cv_why *why) {
  if (identity->role == CV_ROLE_REQUESTER) {
    return check_requester(broker, identity, why);
  }
  if (is_crowd(identity) && identity->last >= CV_WORKER_ID_END) {
    return cv_fail(why, CV_ERR_DENIED, "worker %llu; expected ids below 2^48", (unsigned long long)identity->last);
  }
  for (struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    if (conn->close_due || conn->identity.role == CV_ROLE_REQUESTER) {
      continue;
    }
    if (is_same(&conn->identity, identity)) {
      say_goodbye(broker, conn, "the same certificate has connected again");
      cv_lease_return_all(broker, conn);
    } else if (is_crowd(identity) && is_crowd(&conn->identity) && cv_identity_overlaps(identity, &conn->identity)) {
      return cv_fail(why, CV_ERR_EXISTS, "workers %s overlap those of %s, which is connected", identity->name,
                     conn->identity.name);
    }
  }
  return CV_OK;
}

enum cv_err cv_broker_join(struct cv_broker *broker, const struct cv_identity *identity, void *shell,
                           struct cv_broker_conn **ret, struct cv_why *why) {
  CV_TRY(cv_broker_unless_failed(broker, check_join(broker, identity, why), why));
  struct cv_broker_conn *conn = calloc(1, sizeof(*conn));
  if (conn == NULL) {
    return cv_broker_unless_failed(broker, CV_ERR_NOMEM, why);
  }
  conn->identity = *identity;
  (void)snprintf(conn->who, sizeof(conn->who), "%s/%s", cv_role_text(identity->role), identity->name);
  conn->shell = shell;
  conn->penalty = CV_PENALTY_NEW;
  conn->lease_free = conn->lease_first = conn->lease_last = UINT32_MAX;
  conn->next = broker->conns;
  if (conn->next != NULL) {
    conn->next->prev = conn;
  }
  broker->conns = conn;
  broker->crowd_conns += is_crowd(identity);
  broker->order_conns += identity->role == CV_ROLE_REQUESTER;
  if (identity->role == CV_ROLE_THIRDPARTY) {
    cv_rank_connected(broker, conn);
  }
  *ret = conn;
  return CV_OK;
}

void cv_broker_leave(struct cv_broker *broker, struct cv_broker_conn *conn) {
  cv_lease_return_all(broker, conn);
  if (broker->rank == conn) {
    cv_rank_disconnected(broker);
  }
  *(conn->prev == NULL ? &broker->conns : &conn->prev->next) = conn->next;
  if (conn->next != NULL) {
    conn->next->prev = conn->prev;
  }
  broker->cursor = broker->cursor == conn ? conn->next : broker->cursor;
  broker->fair = broker->fair == conn ? NULL : broker->fair;
  broker->last_out = broker->last_out == &conn->ready ? NULL : broker->last_out;
  broker->crowd_conns -= is_crowd(&conn->identity);
  broker->order_conns -= conn->identity.role == CV_ROLE_REQUESTER;
  conn_free(conn);
  broker->said = true; /* its places may go to others */
}

void *cv_broker_conn_shell(const struct cv_broker_conn *conn) {
  return conn->shell;
}

/* ---- time ---- */

static void check_limits(struct cv_broker *broker, struct cv_campaign *campaign) {
  uint64_t now_ms = broker->now_ms;
  if (campaign->phase == CV_PHASE_STOPPING && campaign->end == CV_END_CANCELLED &&
      cv_rank_awaited(broker, campaign) != NULL) {
    cv_campaign_end(broker, campaign, CV_END_CANCELLED); /* its third-party may never come: it ends as it stands */
  }
  if (campaign->phase >= CV_PHASE_STOPPING) {
    return;
  }
  if (campaign->deadline_wall_ms != 0 &&
      (broker->wall_ms >= campaign->deadline_wall_ms || now_ms >= campaign->deadline_ms)) {
    cv_campaign_stop(broker, campaign, CV_END_DEADLINE);
  } else if (campaign->spec.idle_ms != 0 && campaign->open_arms > 0 &&
             now_ms > campaign->active_ms + campaign->spec.idle_ms) {
    cv_campaign_stop(broker, campaign, CV_END_IDLE);
  }
}

/* While this process stood still it heard nobody: that time is not held against the crowd. */
static void forgive_stall(struct cv_broker *broker, uint64_t now_ms) {
  uint64_t gap_ms = now_ms - broker->ticked_ms;
  for (struct cv_campaign *campaign = broker->open; gap_ms > CV_STALL_MS && campaign != NULL;
       campaign = campaign->next_open) {
    campaign->active_ms += gap_ms;
  }
  broker->ticked_ms = now_ms;
}

void cv_broker_tick(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms) {
  if (broker->started_ms == 0) {
    broker->started_ms = now_ms;
  }
  forgive_stall(broker, now_ms);
  broker->now_ms = now_ms;
  broker->wall_ms = wall_ms;
  uint64_t free_before = 0, free_after = 0;
  struct cv_campaign *campaign = broker->open;
  for (; campaign != NULL; campaign = campaign->next_open) {
    free_before += campaign->free_places;
  }
  for (struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    cv_lease_expire(broker, conn, now_ms);
  }
  struct cv_campaign *next;
  for (campaign = broker->open; campaign != NULL; campaign = next) {
    next = campaign->next_open;
    free_after += campaign->free_places;
    check_limits(broker, campaign);
  }
  broker->said = broker->said || free_after != free_before;
  cv_ended_sweep(broker);
  cv_order_tick(broker, now_ms);
}

void cv_broker_drain(struct cv_broker *broker) {
  broker->draining = true;
}

bool cv_broker_is_drained(const struct cv_broker *broker) {
  for (const struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    if (conn->outstanding > 0) {
      return false;
    }
  }
  return !broker->changed && !broker->in_flight;
}

/* ---- batches and outputs ---- */

size_t cv_broker_gathered(const struct cv_broker *broker) {
  return broker->gathered;
}

size_t cv_broker_share(const struct cv_broker *broker) {
  size_t share = CV_GATHER_ALL / (broker->crowd_conns + 1);
  return share < CV_GATHER_LEAST ? CV_GATHER_LEAST : share;
}

bool cv_broker_conn_is_sated(const struct cv_broker *broker, const struct cv_broker_conn *conn) {
  return conn->gathered >= cv_broker_share(broker);
}

bool cv_broker_is_unserved(const struct cv_broker *broker) {
  return broker->unserved;
}

void cv_broker_hold(struct cv_broker *broker, struct cv_broker_conn *conn, bool hold) {
  conn->held = hold;
  broker->said = broker->said || !hold;
}

bool cv_broker_is_pending(const struct cv_broker *broker) {
  return broker->changed || broker->said || broker->failed;
}

static void swap_out(struct cv_broker_conn *conn) {
  struct cv_crowd_out out = conn->ready;
  conn->ready = conn->gather;
  conn->gather = out;
  conn->gathered = 0;
}

static enum cv_err fill_outputs(struct cv_broker *broker, uint64_t now_ms) {
  for (struct cv_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    if (campaign->phase >= CV_PHASE_STOPPING && !campaign->done_told) {
      campaign->done_told = true;
      CV_TRY(cv_crowd_tell_done(broker, campaign));
    }
  }
  broker->said = false;
  for (struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    if (is_crowd(&conn->identity)) {
      if (conn->close_due) {
        conn->gather.frame.goodbye = conn->goodbye;
      }
      swap_out(conn);
    } else if (conn->identity.role == CV_ROLE_REQUESTER) {
      CV_TRY(cv_order_fill(broker, conn, now_ms));
    }
  }
  return cv_rank_fill(broker);
}

static enum cv_err flush(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms, struct cv_batch *batch,
                         bool *ret_store) {
  CV_REQUIRE(!broker->in_flight);
  broker->now_ms = now_ms;
  broker->wall_ms = wall_ms;
  CV_TRY(cv_crowd_assign_all(broker, now_ms, wall_ms));
  cv_batch_clear(batch);
  batch->commit = broker->commit;
  bool store = broker->changed;
  CV_TRY(fill_outputs(broker, now_ms));
  if (store) {
    batch->totals = broker->totals;
    CV_TRY(cv_image_fill(broker, batch));
    if (broker->failed || !cv_buf_ok(&batch->bytes)) {
      return CV_ERR_NOMEM;
    }
    broker->commit++;
    broker->figures.commits++;
  }
  broker->said = broker->said || broker->unserved;
  broker->changed = false;
  broker->gathered = 0;
  broker->in_flight = true;
  *ret_store = store;
  return CV_OK;
}

enum cv_err cv_broker_flush(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms, struct cv_batch *batch,
                            bool *ret_store) {
  CV_TRY(cv_broker_unless_failed(broker, CV_OK, NULL));
  return cv_broker_unless_failed(broker, flush(broker, now_ms, wall_ms, batch, ret_store), NULL);
}

void cv_broker_stored(struct cv_broker *broker) {
  CV_REQUIRE(broker->in_flight);
  broker->in_flight = false;
  broker->cursor = broker->conns;
}

bool cv_broker_next_out(struct cv_broker *broker, struct cv_broker_out *ret) {
  if (broker->last_out != NULL) {
    cv_crowd_out_empty(broker->last_out);
    broker->last_out = NULL;
  }
  while (broker->cursor != NULL && !broker->failed) {
    struct cv_broker_conn *conn = broker->cursor;
    broker->cursor = conn->next;
    *ret = (struct cv_broker_out){.conn = conn, .close = conn->close_due};
    if (is_crowd(&conn->identity) && !cv_crowd_out_is_empty(&conn->ready.frame)) {
      ret->schema = CV_SCHEMA_CROWD;
      ret->frame.crowd = &conn->ready.frame;
      broker->last_out = &conn->ready;
      ret->close = conn->ready.frame.goodbye != NULL;
      return true;
    }
    if (conn->identity.role == CV_ROLE_THIRDPARTY && conn->close_due) {
      broker->rank_goodbye = (struct cv_rank_frame){.goodbye = conn->goodbye};
      ret->schema = CV_SCHEMA_RANK;
      ret->frame.rank = &broker->rank_goodbye;
      return true;
    }
    if (conn == broker->rank && broker->rank_ready) {
      broker->rank_ready = false;
      ret->schema = CV_SCHEMA_RANK;
      ret->frame.rank = &broker->rank_frame;
      return true;
    }
    if (conn->identity.role == CV_ROLE_REQUESTER && conn->order_ready) {
      conn->order_ready = false;
      ret->schema = CV_SCHEMA_ORDER;
      ret->frame.order = &conn->order;
      return true;
    }
  }
  if (!broker->in_flight && !broker->failed) {
    cv_ended_leave_memory(broker);
  }
  return false;
}

void cv_broker_figures(const struct cv_broker *broker, struct cv_broker_figures *ret) {
  *ret = broker->figures;
  ret->crowd_conns = broker->crowd_conns;
  ret->order_conns = broker->order_conns;
  ret->campaigns_open = broker->open_count;
  ret->campaigns_kept = broker->archive.count;
  ret->thirdparty = broker->rank != NULL;
}
