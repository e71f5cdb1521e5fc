/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's core: events in, frames and batches out. Pure: time, randomness and authentication are arguments,
 * storage and connections are somebody else's.
 *
 * The rule that everything rests on: whatever an event changes goes into the next batch, and whatever an event has to
 * say is said only after that batch is stored. So an acknowledgement follows its token to disk, a release its charge,
 * an assignment its plan.
 *
 *   loop:  event, event, ... -> cv_broker_flush() -> [batch stored by the shell] -> cv_broker_stored() ->
 *          cv_broker_next_out() until it returns false
 *
 * Between flush and stored further events may come in (they belong to the next batch); a second flush may not.
 *
 * Times: `now_ms` is monotonic, `wall_ms` since 1970.
 *
 * Out of memory, wherever it happens, ends the core: from then on every function that can say so is CV_ERR_NOMEM,
 * cv_broker_is_pending() is true and nothing is said any more. The shell stops the daemon; the database has everything
 * that was acknowledged, and a restart goes on from it.
 */
#ifndef CV_BROKER_CORE_H
#define CV_BROKER_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/batch.h"
#include "broker/gate.h"
#include "broker/ticket.h"
#include "common/base/digest.h"
#include "common/base/refusals.h"
#include "common/base/rng.h"
#include "common/net/identity.h"
#include "proto/codec/crowd.h"
#include "proto/codec/order.h"
#include "proto/codec/rank.h"

struct cv_broker;
struct cv_broker_conn;

struct cv_broker_config {
  char name[CV_NAME_BYTES];
  struct cv_broker_limits limits;
  struct cv_tagger tagger;
  cv_digest_fn *digest;
  struct cv_rng *noise; /* the noise's randomness */
  bool noise_seeded;    /* unsafe, for tests: noise is a function of (noise_seed, arm, release) instead */
  uint64_t noise_seed;
  uint64_t journal_bytes; /* how long the journal grows before chunks are written; 0: 1 MiB */
  /* One line about what happened, for the log; may be NULL. `peer` ("gateway/1-9") limits repetitions; NULL: none. */
  void (*note)(void *data, const char *peer, const char *text);
  void *note_data;
};

/* A broker without campaigns. The config is copied, what it points to borrowed for as long. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_new(const struct cv_broker_config *config, struct cv_broker **ret);
void cv_broker_free(struct cv_broker *broker);

/*
 * ---- restoring, before any event ----
 *
 * In this order: the records of campaigns that have ended; of each campaign without one its description, plans,
 * releases, ledger, standings and state, then cv_broker_restore_whole(); recoveries, chunks, journal, the end.
 */

/* Each takes a row as a batch had it. CV_ERR_DAMAGED if it is none, or does not fit what came before; CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_restore_ended(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_campaign(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_plan(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_release(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_ledger(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_standings(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_state(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
/*
 * These were all of them. A campaign that has ended without a record (an older program stored it) gets one and leaves
 * memory again. One that has a record was fetched: it stays until it has been served from, if it agrees with that.
 */
CV_MUST_USE enum cv_err cv_broker_restore_whole(struct cv_broker *broker, uint32_t campaign);
CV_MUST_USE enum cv_err cv_broker_restore_recovery(struct cv_broker *broker, uint32_t number, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_chunk(struct cv_broker *broker, uint32_t campaign, enum cv_chunk_kind kind,
                                                uint64_t number, uint64_t commit, struct cv_reader *bytes);
/* Rows in the order of commits. */
CV_MUST_USE enum cv_err cv_broker_restore_journal(struct cv_broker *broker, uint32_t campaign, uint64_t commit,
                                                  struct cv_reader *bytes);
/* `commit` is the last one stored, and `totals` what was stored with it; NULL: not compared. */
CV_MUST_USE enum cv_err cv_broker_restore_end(struct cv_broker *broker, uint64_t commit, const struct cv_totals *totals,
                                              uint64_t now_ms, uint64_t wall_ms);

/*
 * ---- fetching ----
 *
 * A campaign that has ended is in the database only. When its requester asks for it, the shell restores it:
 * description, plans, releases, ledger, standings, state, cv_broker_restore_whole(); or says that it cannot.
 */

/* Whether one is to be fetched now; never between flush and stored. */
bool cv_broker_wanted(struct cv_broker *broker, uint32_t *ret_campaign);
/* Its rows are damaged, as `why` says: who waits for it is told, and nothing of it stays in memory. */
void cv_broker_fetch_failed(struct cv_broker *broker, uint32_t campaign, const char *why);

/* ---- connections ---- */

/*
 * A peer whose certificate has been checked. CV_ERR_EXISTS with the reason if its workers overlap those of another
 * connected certificate. The same certificate again takes the place of the older connection, which is told and closed.
 * `shell` comes back with each output.
 */
CV_MUST_USE enum cv_err cv_broker_join(struct cv_broker *broker, const struct cv_identity *identity, void *shell,
                                       struct cv_broker_conn **ret, struct cv_why *why);
/* The connection is gone: its assignments are free again. No output mentions it afterwards. */
void cv_broker_leave(struct cv_broker *broker, struct cv_broker_conn *conn);
void *cv_broker_conn_shell(const struct cv_broker_conn *conn);

/*
 * A frame arrived. An error means that the peer broke the protocol: the shell sends the reason as a Goodbye and closes.
 * What the frame did before the error stands.
 */
CV_MUST_USE enum cv_err cv_broker_on_crowd(struct cv_broker *broker, struct cv_broker_conn *conn,
                                           const struct cv_crowd_frame *frame, uint64_t now_ms, uint64_t wall_ms,
                                           struct cv_why *why);
CV_MUST_USE enum cv_err cv_broker_on_order(struct cv_broker *broker, struct cv_broker_conn *conn,
                                           const struct cv_order_frame *frame, uint64_t now_ms, uint64_t wall_ms,
                                           struct cv_why *why);
CV_MUST_USE enum cv_err cv_broker_on_rank(struct cv_broker *broker, struct cv_broker_conn *conn,
                                          const struct cv_rank_frame *frame, uint64_t now_ms, struct cv_why *why);
/*
 * Leases, deadlines, idle campaigns, progress. Several times a second; after a longer gap (a process that was stopped,
 * a machine that slept) the gap does not count as the crowd's idleness.
 */
void cv_broker_tick(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms);
/* No assignments from now on. cv_broker_is_drained: every assignment has been answered or has expired. */
void cv_broker_drain(struct cv_broker *broker);
bool cv_broker_is_drained(const struct cv_broker *broker);

/* ---- batches and outputs ---- */

/*
 * Whether this connection has been answered in vain as often since the last flush as its share allows: tokens that were
 * not accepted, declined assignments, arrivals turned away. The shell then reads no more of it until the next one.
 */
bool cv_broker_conn_is_sated(const struct cv_broker *broker, const struct cv_broker_conn *conn);
/* Workers wait for an answer who were not looked at in the last flush: one will be due, but others come first. */
bool cv_broker_is_unserved(const struct cv_broker *broker);
/* A connection that is slow to read: exports, progress and history wait until it is told otherwise. */
void cv_broker_hold(struct cv_broker *broker, struct cv_broker_conn *conn, bool hold);
/* Tokens gathered for the next batch; whether anything waits to be stored or said. */
size_t cv_broker_gathered(const struct cv_broker *broker);
bool cv_broker_is_pending(const struct cv_broker *broker);
/*
 * Assigns what can be assigned, closes the books and fills `batch` (cleared first). *ret_store is false if nothing has
 * to be stored: then call cv_broker_stored() at once.
 */
CV_MUST_USE enum cv_err cv_broker_flush(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms,
                                        struct cv_batch *batch, bool *ret_store);
void cv_broker_stored(struct cv_broker *broker);

enum cv_schema { CV_SCHEMA_CROWD, CV_SCHEMA_RANK, CV_SCHEMA_ORDER };

struct cv_broker_out {
  struct cv_broker_conn *conn;
  enum cv_schema schema;
  union {
    const struct cv_crowd_frame *crowd; /* may be more than a wire frame holds: the shell cuts it */
    const struct cv_rank_frame *rank;
    const struct cv_order_frame *order;
  } frame;
  bool close; /* after sending */
};
/* One output after the other; each lives until the next call or event. */
bool cv_broker_next_out(struct cv_broker *broker, struct cv_broker_out *ret);

/* ---- for health and metrics ---- */

struct cv_broker_figures {
  uint64_t tokens, duplicates, expired, refused, releases, plans, commits;
  struct cv_refusals refusals;
  uint32_t crowd_conns, order_conns, campaigns_open, campaigns_kept;
  bool thirdparty;
};
/* Counters since the start, and what is there now. */
void cv_broker_figures(const struct cv_broker *broker, struct cv_broker_figures *ret);

#endif
