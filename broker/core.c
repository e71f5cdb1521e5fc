/* SPDX-License-Identifier: Apache-2.0 */
/* The core as a whole: connections, time, and the steps from events to a batch and from a stored batch to outputs. */
#include "broker/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/answer.h"
#include "broker/assign.h"
#include "broker/cobroker.h"
#include "broker/conn.h"
#include "broker/crowd.h"
#include "broker/ended.h"
#include "broker/ending.h"
#include "broker/fetch.h"
#include "broker/image.h"
#include "broker/order.h"
#include "broker/requester.h"
#include "broker/spent.h"
#include "broker/state.h"
#include "broker/thirdparty.h"
#include "broker/two.h"
#include "broker/workers.h"

enum { ACCOUNT_CHUNKS = 65536 /* of the table of workers' accounts: 64 million workers */ };

enum cv_err cv_broker_new(const struct cv_broker_config *config, struct cv_broker **ret) {
  struct cv_broker *broker = calloc(1, sizeof(*broker));
  if (broker == NULL) {
    return CV_ERR_NOMEM;
  }
  broker->config = *config;
  if (config->journal_bytes == 0) {
    broker->config.journal_bytes = CV_JOURNAL_BYTES;
  }
  broker->commit = 1;
  broker->quiet = true; /* until restored: see cv_broker_restore_end() */
  cv_chunks_init(&broker->accounts.cells, ACCOUNT_CHUNKS);
  cv_archive_init(&broker->archive);
  *ret = broker;
  return CV_OK;
}

static void conn_free(struct cv_broker_conn *conn) {
  cv_broker_workers_free(conn->workers);
  cv_broker_requester_free(conn->requester);
  cv_broker_thirdparty_free(conn->thirdparty);
  cv_broker_cobroker_free(conn->cobroker);
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
  CV_TABLE_DRAIN(broker->campaigns, cv_broker_campaign_free);
  cv_archive_fini(&broker->archive);
  cv_chunks_fini(&broker->accounts.cells);
  free(broker->dirty);
  free(broker);
}

/* ---- connections ---- */

static bool is_crowd(const struct cv_identity *identity) {
  return identity->role == CV_ROLE_WORKER || identity->role == CV_ROLE_GATEWAY;
}

/* Schedules a goodbye; the shell closes the connection after the frame is sent. */
static void say_goodbye(struct cv_broker *broker, struct cv_broker_conn *conn, const char *why) {
  (void)snprintf(conn->goodbye, sizeof(conn->goodbye), "%s", why);
  conn->close_due = true;
  broker->said = true;
}

static bool is_same(const struct cv_identity *a, const struct cv_identity *b) {
  return a->role == b->role && strcmp(a->name, b->name) == 0;
}

/* A requester may have several connections, but must not use up the broker's limit of connections. */
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

/* Ends all leases of a connection, so that its places can be assigned to other workers. */
static void return_leases(struct cv_broker *broker, struct cv_broker_conn *conn) {
  if (conn->workers != NULL) {
    cv_broker_workers_return_all(broker, conn->workers);
  }
}

/* Whether the identity may connect now; says goodbye to an older connection of the same certificate. */
static enum cv_err check_join(struct cv_broker *broker, const struct cv_identity *identity, struct cv_why *why) {
  if (identity->role == CV_ROLE_REQUESTER) {
    return check_requester(broker, identity, why);
  }
  if (identity->role == CV_ROLE_COBROKER) {
    CV_TRY(cv_broker_cobroker_check(broker, identity, why));
  }
  if (is_crowd(identity) && identity->last >= CV_WORKER_ID_END) {
    return cv_fail(why, CV_ERR_DENIED, "worker %llu; expected ids below 2^48", (unsigned long long)identity->last);
  }
  for (struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    if (conn->close_due || conn->identity.role == CV_ROLE_REQUESTER) {
      continue;
    }
    /* The same certificate replaces its older connection; a different one with the same workers is refused, because a
     * worker must have one queue and one account of places. */
    if (is_same(&conn->identity, identity)) {
      say_goodbye(broker, conn, "replaced by a newer connection of the same certificate");
      return_leases(broker, conn);
    } else if (is_crowd(identity) && is_crowd(&conn->identity) && cv_identity_overlaps(identity, &conn->identity)) {
      return cv_fail(why, CV_ERR_EXISTS,
                     "workers of %s overlap those of %s, which is connected; expected disjoint ranges", identity->name,
                     conn->identity.name);
    }
  }
  return CV_OK;
}

/* A connection with the state of its role; NULL if out of memory. */
static struct cv_broker_conn *conn_new(const struct cv_identity *identity, void *shell) {
  struct cv_broker_conn *conn = calloc(1, sizeof(*conn));
  if (conn == NULL) {
    return NULL;
  }
  conn->identity = *identity;
  (void)snprintf(conn->who, sizeof(conn->who), "%s/%s", cv_role_text(identity->role), identity->name);
  conn->shell = shell;
  bool made = true;
  if (is_crowd(identity)) {
    made = (conn->workers = cv_broker_workers_new()) != NULL;
  } else if (identity->role == CV_ROLE_REQUESTER) {
    made = (conn->requester = cv_broker_requester_new()) != NULL;
  } else if (identity->role == CV_ROLE_THIRDPARTY) {
    made = (conn->thirdparty = cv_broker_thirdparty_new()) != NULL;
  } else if (identity->role == CV_ROLE_COBROKER) {
    made = (conn->cobroker = cv_broker_cobroker_new()) != NULL;
  }
  if (!made) {
    free(conn);
    return NULL;
  }
  return conn;
}

enum cv_err cv_broker_join(struct cv_broker *broker, const struct cv_identity *identity, void *shell,
                           struct cv_broker_conn **ret, struct cv_why *why) {
  CV_TRY(cv_unless_failed(&broker->failed, check_join(broker, identity, why), why));
  /* check_join() may have scheduled goodbyes to replaced connections: they are closed after the next flush. */
  struct cv_broker_conn *conn = conn_new(identity, shell);
  if (conn == NULL) {
    return cv_unless_failed(&broker->failed, CV_ERR_NOMEM, why);
  }
  conn->next = broker->conns;
  if (conn->next != NULL) {
    conn->next->prev = conn;
  }
  broker->conns = conn;
  broker->crowd_conns += conn->workers != NULL;
  for (struct cv_broker_campaign *each = conn->workers == NULL ? NULL : broker->open; each != NULL;
       each = each->next_open) {
    cv_declines_forget(&each->declines, conn->who); /* it is asked again */
  }
  broker->order_conns += conn->requester != NULL;
  if (conn->thirdparty != NULL) {
    cv_broker_thirdparty_join(broker, conn);
  }
  if (conn->cobroker != NULL) {
    cv_broker_cobroker_join(broker, conn);
  }
  *ret = conn;
  return CV_OK;
}

/* The acknowledgements of its tokens that wait for the co-broker have nowhere to go. */
static void forget_acknowledgements(struct cv_broker *broker, const struct cv_broker_conn *conn) {
  for (struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    if (campaign->two != NULL) {
      cv_docket_forget(&campaign->two->docket, conn);
    }
  }
}

void cv_broker_leave(struct cv_broker *broker, struct cv_broker_conn *conn) {
  return_leases(broker, conn);
  if (broker->rank == conn) {
    cv_broker_thirdparty_leave(broker);
  }
  if (broker->cobroker == conn) {
    cv_broker_cobroker_leave(broker);
  }
  if (conn->workers != NULL && conn->workers->waits > 0) {
    forget_acknowledgements(broker, conn);
  }
  /* Unlink, then correct every pointer of the broker that may refer to this connection. */
  *(conn->prev == NULL ? &broker->conns : &conn->prev->next) = conn->next;
  if (conn->next != NULL) {
    conn->next->prev = conn->prev;
  }
  broker->cursor = broker->cursor == conn ? conn->next : broker->cursor;
  broker->fair = broker->fair == conn ? NULL : broker->fair;
  if (conn->workers != NULL && broker->last_out == &conn->workers->ready) {
    broker->last_out = NULL;
  }
  broker->parted_ms = conn->workers != NULL ? broker->now_ms : broker->parted_ms;
  broker->crowd_conns -= conn->workers != NULL;
  broker->order_conns -= conn->requester != NULL;
  conn_free(conn);
  broker->said = true; /* its places can be assigned to other connections */
}

bool cv_broker_renew(struct cv_broker *broker, const struct cv_digest *key) {
  if (broker->config.limits.alone || cv_digest_is_same(key, &broker->config.duo.broker)) {
    return false;
  }
  broker->config.duo.broker = *key;
  cv_broker_cobroker_end_strangers(broker);
  cv_broker_cobroker_leave(broker);
  for (struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    if ((conn->workers != NULL || conn->cobroker != NULL) && !conn->close_due) {
      say_goodbye(broker, conn, "the broker has a new key");
      return_leases(broker, conn);
    }
  }
  return true;
}

void *cv_broker_conn_shell(const struct cv_broker_conn *conn) {
  return conn->shell;
}

/* ---- frames ---- */

enum cv_err cv_broker_on_crowd(struct cv_broker *broker, struct cv_broker_conn *conn,
                               const struct cv_crowd_frame *frame, uint64_t now_ms, uint64_t wall_ms,
                               struct cv_why *why) {
  /* After memory ran out a change may be half made: no event may build on it, and no batch may store it. */
  CV_TRY(cv_unless_failed(&broker->failed, CV_OK, why));
  broker->now_ms = now_ms;
  broker->wall_ms = wall_ms;
  return cv_unless_failed(&broker->failed, cv_broker_crowd_frame(broker, conn, frame, why), why);
}

enum cv_err cv_broker_on_order(struct cv_broker *broker, struct cv_broker_conn *conn,
                               const struct cv_order_frame *frame, uint64_t now_ms, uint64_t wall_ms,
                               struct cv_why *why) {
  CV_TRY(cv_unless_failed(&broker->failed, CV_OK, why));
  broker->now_ms = now_ms;
  broker->wall_ms = wall_ms;
  return cv_unless_failed(&broker->failed, cv_broker_order_frame(broker, conn, frame, why), why);
}

enum cv_err cv_broker_on_rank(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_rank_frame *frame,
                              uint64_t now_ms, struct cv_why *why) {
  CV_TRY(cv_unless_failed(&broker->failed, CV_OK, why));
  broker->now_ms = now_ms;
  return cv_unless_failed(&broker->failed, cv_broker_thirdparty_frame(broker, conn, frame, why), why);
}

enum cv_err cv_broker_on_share(struct cv_broker *broker, struct cv_broker_conn *conn,
                               const struct cv_share_frame *frame, uint64_t now_ms, uint64_t wall_ms,
                               struct cv_why *why) {
  CV_TRY(cv_unless_failed(&broker->failed, CV_OK, why));
  broker->now_ms = now_ms;
  broker->wall_ms = wall_ms;
  return cv_unless_failed(&broker->failed, cv_broker_cobroker_frame(broker, conn, frame, why), why);
}

/* ---- time ---- */

/* Stops a campaign whose deadline has passed or that has been idle for too long. */
static void check_limits(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  uint64_t now_ms = broker->now_ms;
  if (campaign->phase == CV_PHASE_STOPPING && campaign->end == CV_END_CANCELLED &&
      cv_broker_campaign_awaited(broker, campaign) != NULL) {
    /* The campaign's third-party may never connect again, so a cancelled campaign ends without a result. */
    cv_broker_campaign_end(broker, campaign, CV_END_CANCELLED, NULL);
  }
  if (campaign->phase >= CV_PHASE_STOPPING) {
    return;
  }
  /* The monotonic clock starts again with the machine, the wall clock can be set back: the earlier of the two
   * counts. */
  if (campaign->deadline_wall_ms != 0 &&
      (broker->wall_ms >= campaign->deadline_wall_ms || now_ms >= campaign->deadline_ms)) {
    cv_broker_campaign_stop(broker, campaign, CV_END_DEADLINE, NULL);
  } else if (campaign->spec.idle_ms != 0 && campaign->open_arms > 0 && !cv_two_waits(campaign) &&
             now_ms > campaign->active_ms + campaign->spec.idle_ms) {
    if (!cv_broker_spent_close_all(broker, campaign)) {
      cv_broker_campaign_stop(broker, campaign, CV_END_IDLE, NULL);
    }
  } else {
    cv_broker_spent_check(broker, campaign);
    cv_broker_nobody_look(broker, campaign);
  }
}

/* A stalled process received nothing: the gap does not count as idle time of campaigns. */
static void forgive_stall(struct cv_broker *broker, uint64_t now_ms) {
  uint64_t gap_ms = now_ms - broker->ticked_ms;
  uint64_t stall_ms = broker->config.stall_ms != 0 ? broker->config.stall_ms : CV_STALL_MS;
  for (struct cv_broker_campaign *campaign = broker->open; gap_ms > stall_ms && campaign != NULL;
       campaign = campaign->next_open) {
    campaign->active_ms += gap_ms;
  }
  broker->ticked_ms = now_ms;
}

void cv_broker_tick(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms) {
  forgive_stall(broker, now_ms);
  broker->now_ms = now_ms;
  broker->wall_ms = wall_ms;
  /* Expired leases return their places. If the number of free places changed, a flush is due to assign them. */
  uint64_t free_before = 0, free_after = 0;
  struct cv_broker_campaign *campaign = broker->open;
  for (; campaign != NULL; campaign = campaign->next_open) {
    free_before += campaign->urn.places;
  }
  for (struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    if (conn->workers != NULL) {
      cv_broker_workers_expire(broker, conn->workers, now_ms);
    }
  }
  struct cv_broker_campaign *next;
  for (campaign = broker->open; campaign != NULL; campaign = next) { /* a check may remove the campaign from the list */
    next = campaign->next_open;
    free_after += campaign->urn.places;
    check_limits(broker, campaign);
  }
  broker->said = broker->said || free_after != free_before;
  /* After the checks: a campaign that just ended counts for retention, and its end is progress to report. */
  cv_ended_sweep(broker);
  cv_broker_answer_tick(broker, now_ms);
}

void cv_broker_drain(struct cv_broker *broker) {
  broker->draining = true;
}

bool cv_broker_is_drained(const struct cv_broker *broker) {
  for (const struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    if (conn->workers != NULL && conn->workers->leases.open > 0) {
      return false;
    }
  }
  /* Answered is not enough: the last tokens must be stored, or their workers would send them again after the
   * restart. */
  return !broker->changed && !broker->in_flight;
}

/* ---- batches and outputs ---- */

size_t cv_broker_gathered(const struct cv_broker *broker) {
  return broker->gathered;
}

bool cv_broker_conn_is_over_share(const struct cv_broker *broker, const struct cv_broker_conn *conn) {
  return conn->workers != NULL && conn->workers->gathered >= cv_broker_workers_share(broker);
}

bool cv_broker_is_unserved(const struct cv_broker *broker) {
  return broker->unserved;
}

void cv_broker_hold(struct cv_broker *broker, struct cv_broker_conn *conn, bool hold) {
  conn->held = hold;
  broker->said = broker->said || !hold;
}

bool cv_broker_is_overtaken(const struct cv_broker *broker) {
  return broker->overtaken;
}

bool cv_broker_is_pending(const struct cv_broker *broker) {
  return broker->changed || broker->said || broker->failed;
}

/* Prepares the frame of every connection from what was gathered; they are sent once the batch is stored. */
static enum cv_err fill_outputs(struct cv_broker *broker) {
  /* Before the frames are swapped, so that the end of a campaign is part of this flush. */
  for (struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    if (campaign->phase >= CV_PHASE_STOPPING && !campaign->done_told) {
      campaign->done_told = true;
      CV_TRY(cv_broker_workers_tell_done(broker, campaign));
    }
  }
  /* Cleared first: whatever is prepared below may set it again for the next flush. */
  broker->said = false;
  for (struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    if (conn->workers != NULL) {
      if (conn->close_due) {
        conn->workers->gather.frame.goodbye = conn->goodbye;
      }
      cv_broker_workers_swap(conn->workers);
    } else if (conn->requester != NULL) {
      CV_TRY(cv_broker_answer_fill(broker, conn));
    }
  }
  CV_TRY(cv_broker_cobroker_fill(broker));
  return cv_broker_thirdparty_fill(broker);
}

/* One flush: everything since the last one becomes a batch and a set of prepared outputs. */
static enum cv_err flush(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms, struct cv_broker_batch *batch,
                         bool *ret_store) {
  CV_REQUIRE(!broker->in_flight);
  broker->now_ms = now_ms;
  broker->wall_ms = wall_ms;
  /* The order matters: assignments and batches of tokens before outputs, so that they are sent with this batch;
   * `changed` read before
   * outputs, because they only report state; the image last, when nothing changes any more. */
  CV_TRY(cv_broker_assign(broker, now_ms, wall_ms));
  CV_TRY(cv_two_cut(broker));
  cv_broker_batch_clear(batch);
  batch->commit = broker->commit;
  bool store = broker->changed;
  CV_TRY(fill_outputs(broker));
  if (store) {
    batch->totals = broker->totals;
    CV_TRY(cv_image_fill(broker, batch));
    /* An incomplete batch must not be stored. */
    if (broker->failed || !cv_buf_ok(&batch->bytes)) {
      return CV_ERR_NOMEM;
    }
    /* Only a batch that is stored takes a number: numbers of commits have no gaps but those of recoveries. */
    broker->commit++;
  }
  /* From here on events belong to the next batch. */
  broker->said = broker->said || broker->unserved;
  broker->changed = false;
  broker->gathered = 0;
  broker->in_flight = true;
  *ret_store = store;
  return CV_OK;
}

enum cv_err cv_broker_flush(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms, struct cv_broker_batch *batch,
                            bool *ret_store) {
  CV_TRY(cv_unless_failed(&broker->failed, CV_OK, NULL));
  return cv_unless_failed(&broker->failed, flush(broker, now_ms, wall_ms, batch, ret_store), NULL);
}

void cv_broker_stored(struct cv_broker *broker) {
  CV_REQUIRE(broker->in_flight);
  broker->in_flight = false;
  broker->cursor = broker->conns;
}

/* The connection's prepared output, if there is one. Each is taken once. */
static bool take_out(struct cv_broker *broker, struct cv_broker_conn *conn, struct cv_broker_out *ret) {
  struct cv_broker_workers *workers = conn->workers;
  struct cv_broker_thirdparty *thirdparty = conn->thirdparty;
  struct cv_broker_cobroker *cobroker = conn->cobroker;
  *ret = (struct cv_broker_out){.conn = conn, .close = conn->close_due};
  if (workers != NULL && !cv_broker_outbox_is_empty(&workers->ready.frame)) {
    ret->schema = CV_SCHEMA_CROWD;
    ret->frame.crowd = &workers->ready.frame;
    broker->last_out = &workers->ready;
    ret->close = workers->ready.frame.goodbye != NULL;
    return true;
  }
  /* A replaced connection gets its goodbye only: what was prepared for it continues positions that the newer one has
   * reset. */
  if (thirdparty != NULL && conn->close_due) {
    thirdparty->goodbye = (struct cv_rank_frame){.goodbye = conn->goodbye};
    ret->schema = CV_SCHEMA_RANK;
    ret->frame.rank = &thirdparty->goodbye;
    return true;
  }
  if (cobroker != NULL && (conn->close_due || cobroker->ready)) {
    cobroker->goodbye = (struct cv_share_frame){.goodbye = conn->goodbye};
    cobroker->ready = false;
    ret->schema = CV_SCHEMA_SHARE;
    ret->frame.share = conn->close_due ? &cobroker->goodbye : &cobroker->frame;
    return true;
  }
  if (thirdparty != NULL && thirdparty->ready) {
    thirdparty->ready = false;
    ret->schema = CV_SCHEMA_RANK;
    ret->frame.rank = &thirdparty->frame;
    return true;
  }
  if (conn->requester != NULL && conn->requester->order_ready) {
    conn->requester->order_ready = false;
    ret->schema = CV_SCHEMA_ORDER;
    ret->frame.order = &conn->requester->order;
    return true;
  }
  return false;
}

bool cv_broker_next_out(struct cv_broker *broker, struct cv_broker_out *ret) {
  /* The shell has encoded the frame that the last call lent it; only now may its memory be reused. */
  if (broker->last_out != NULL) {
    cv_broker_outbox_empty(broker->last_out);
    broker->last_out = NULL;
  }
  while (broker->cursor != NULL && !broker->failed) {
    struct cv_broker_conn *conn = broker->cursor;
    broker->cursor = conn->next;
    if (take_out(broker, conn, ret)) {
      return true;
    }
  }
  if (!broker->in_flight && !broker->failed) {
    /* All outputs are taken and no batch is being stored: nothing refers to fetched campaigns any more. */
    cv_broker_leave_memory(broker);
  }
  return false;
}

static void count_open(const struct cv_broker *broker, struct cv_broker_figures *ret) {
  for (const struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    ret->opening += campaign->phase == CV_PHASE_OPENING;
    ret->running += campaign->phase == CV_PHASE_RUNNING;
    ret->stopping += campaign->phase == CV_PHASE_STOPPING;
    ret->waiting += campaign->two == NULL ? 0 : campaign->two->docket.count;
  }
}

void cv_broker_figures(const struct cv_broker *broker, struct cv_broker_figures *ret) {
  *ret = broker->figures;
  for (const struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    ret->conns[conn->identity.role]++;
  }
  count_open(broker, ret);
  ret->campaigns_kept = broker->archive.count;
  ret->workers_spent = broker->accounts.exhausted;
  ret->thirdparty = broker->rank != NULL;
  ret->cobroker = broker->cobroker != NULL;
}

size_t cv_broker_left(const struct cv_broker *broker, struct cv_broker_left *ret, size_t most) {
  size_t n = 0;
  for (const struct cv_broker_campaign *campaign = broker->open; campaign != NULL && n < most;
       campaign = campaign->next_open) {
    struct cv_broker_left left = {.campaign = campaign->id, .tokens_limit = campaign->spec.tokens};
    left.tokens = campaign->tokens < left.tokens_limit ? left.tokens_limit - campaign->tokens : 0;
    if (!cv_privacy_is_unprotected(&campaign->privacy)) {
      left.epsilon_limit_micro = campaign->ledger.limit_micro;
      left.epsilon_micro = left.epsilon_limit_micro - cv_ledger_most(&campaign->ledger);
    }
    ret[n++] = left;
  }
  return n;
}
