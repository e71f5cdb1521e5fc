/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's core: takes events, produces frames and batches. Pure: time, randomness and authentication are
 * arguments; the shell does storage and networking.
 *
 * The central invariant: every change an event makes goes into the next batch, and every output an event causes is sent
 * only after that batch is stored. So a token is on disk before it is acknowledged, a charge before its release is
 * sent, and a plan before its places are assigned.
 *
 *   loop:  event, event, ... -> cv_broker_flush() -> [batch stored by the shell] -> cv_broker_stored() ->
 *          cv_broker_next_out() until it returns false
 *
 * Between flush and stored, further events are allowed (they belong to the next batch); a second flush is not. The core
 * is restored (restore.h) before the first event; ended campaigns are fetched (fetch.h) in between.
 *
 * Times: `now_ms` is monotonic, `wall_ms` counts from 1970.
 *
 * Running out of memory anywhere ends the core: from then on every function that returns an error returns CV_ERR_NOMEM,
 * cv_broker_is_pending() is true and there are no more outputs. The shell stops the daemon; everything that was
 * acknowledged is in the database, and a restart continues from there.
 */
#ifndef CV_BROKER_CORE_H
#define CV_BROKER_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/batch.h"
#include "broker/config.h"
#include "broker/figures.h"
#include "common/net/identity.h"
#include "proto/codec/crowd.h"
#include "proto/codec/order.h"
#include "proto/codec/rank.h"
#include "proto/codec/share.h"

struct cv_broker;
struct cv_broker_conn;

enum { CV_STALL_MS = 500 };

/* Creates a broker without campaigns. Copies the config; what it points to must outlive the broker. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_new(const struct cv_broker_config *config, struct cv_broker **ret);
void cv_broker_free(struct cv_broker *broker);

/* ---- connections ---- */

/*
 * A peer whose certificate has been checked connects. CV_ERR_EXISTS with the reason if its workers overlap those of
 * another connected certificate. If the same certificate is already connected, the older connection gets a goodbye and
 * is closed. Each output carries `shell` back.
 */
CV_MUST_USE enum cv_err cv_broker_join(struct cv_broker *broker, const struct cv_identity *identity, void *shell,
                                       struct cv_broker_conn **ret, struct cv_why *why);
/* The connection is closed: its assigned places become free again. No later output refers to it. */
void cv_broker_leave(struct cv_broker *broker, struct cv_broker_conn *conn);
/* This broker's certificate has that key now. With a co-broker, and with another key than before, it is another party:
 * its campaigns with two brokers end, and the co-broker and the workers get a goodbye, to judge the new key. Returns
 * whether it is another. */
bool cv_broker_renew(struct cv_broker *broker, const struct cv_digest *key);
void *cv_broker_conn_shell(const struct cv_broker_conn *conn);

/*
 * Handles a frame of the schema of the connection's role. An error means that the peer broke the protocol: the shell
 * sends the reason in a goodbye and closes the connection. Effects of the frame before the error persist.
 */
CV_MUST_USE enum cv_err cv_broker_on_crowd(struct cv_broker *broker, struct cv_broker_conn *conn,
                                           const struct cv_crowd_frame *frame, uint64_t now_ms, uint64_t wall_ms,
                                           struct cv_why *why);
CV_MUST_USE enum cv_err cv_broker_on_order(struct cv_broker *broker, struct cv_broker_conn *conn,
                                           const struct cv_order_frame *frame, uint64_t now_ms, uint64_t wall_ms,
                                           struct cv_why *why);
CV_MUST_USE enum cv_err cv_broker_on_rank(struct cv_broker *broker, struct cv_broker_conn *conn,
                                          const struct cv_rank_frame *frame, uint64_t now_ms, struct cv_why *why);
CV_MUST_USE enum cv_err cv_broker_on_share(struct cv_broker *broker, struct cv_broker_conn *conn,
                                           const struct cv_share_frame *frame, uint64_t now_ms, uint64_t wall_ms,
                                           struct cv_why *why);
/*
 * Handles leases, deadlines, idle campaigns and progress. Called several times per second. After a longer gap (the
 * process was stopped, or the machine slept) the gap does not count as idle time of campaigns.
 */
void cv_broker_tick(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms);
/* Stops assigning places. cv_broker_is_drained(): every assignment is answered or expired, and the answers stored. */
void cv_broker_drain(struct cv_broker *broker);
bool cv_broker_is_drained(const struct cv_broker *broker);

/* ---- batches and outputs ---- */

/*
 * Whether the connection has used up its share of unproductive answers since the last flush: tokens that were not
 * accepted, declined assignments, workers turned away. The shell then stops reading from it until the next flush.
 */
bool cv_broker_conn_is_over_share(const struct cv_broker *broker, const struct cv_broker_conn *conn);
/* Whether some waiting workers were not considered in the last flush, because others came first; flush again soon. */
bool cv_broker_is_unserved(const struct cv_broker *broker);
/* Sets or lifts back-pressure: while held, exports, progress and history are withheld from a slow reader. */
void cv_broker_hold(struct cv_broker *broker, struct cv_broker_conn *conn, bool hold);
/* The number of tokens gathered for the next batch; whether there is anything to store or to send. */
size_t cv_broker_gathered(const struct cv_broker *broker);
bool cv_broker_is_pending(const struct cv_broker *broker);
/* Of a shared database: a peer has shown that another broker has the term. The shell stops the daemon; nothing more is
 * stored or sent. */
bool cv_broker_is_overtaken(const struct cv_broker *broker);
/*
 * Assigns places, prepares outputs and fills `batch`, which it clears first. If *ret_store is false there is nothing to
 * store: call cv_broker_stored() immediately.
 */
CV_MUST_USE enum cv_err cv_broker_flush(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms,
                                        struct cv_broker_batch *batch, bool *ret_store);
void cv_broker_stored(struct cv_broker *broker);

enum cv_schema { CV_SCHEMA_CROWD, CV_SCHEMA_RANK, CV_SCHEMA_ORDER, CV_SCHEMA_SHARE };

struct cv_broker_out {
  struct cv_broker_conn *conn;
  enum cv_schema schema;
  union {
    const struct cv_crowd_frame *crowd; /* may exceed one wire frame: the shell splits it */
    const struct cv_rank_frame *rank;
    const struct cv_order_frame *order;
    const struct cv_share_frame *share; /* may exceed one wire frame, too */
    const void *any;
  } frame;
  bool close; /* after sending */
};
/* Returns the next output; it is valid until the next call or event. False if there is none. */
bool cv_broker_next_out(struct cv_broker *broker, struct cv_broker_out *ret);

/* ---- for health and metrics ---- */

/* Counters since the start, and current gauges. */
void cv_broker_figures(const struct cv_broker *broker, struct cv_broker_figures *ret);
/* What the open campaigns have left, the oldest first, of at most `most` of them; returns their number. */
size_t cv_broker_left(const struct cv_broker *broker, struct cv_broker_left *ret, size_t most);

#endif
