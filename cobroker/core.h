/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The co-broker's core: takes events, produces frames and batches. Pure: time, randomness and cryptography are
 * arguments; the shell does storage and networking.
 *
 * The central invariant: every change an event makes goes into the next batch, and every output an event causes is sent
 * only after that batch is stored. So a verify key is on disk before the broker has it, a token before its answer, a
 * charge before its half, and a plan's noise before its places are assigned.
 *
 *   loop:  event, event, ... -> cv_cobroker_flush() -> [batch stored by the shell] -> cv_cobroker_stored() ->
 *          cv_cobroker_next_out() until it returns false
 *
 * Between flush and stored, further events are allowed (they belong to the next batch); a second flush is not. The core
 * is restored (restore.h) before the first event.
 *
 * Times: `now_ms` is monotonic, `wall_ms` counts from 1970.
 *
 * Running out of memory anywhere ends the core: from then on every function that returns an error returns CV_ERR_NOMEM,
 * cv_cobroker_is_pending() is true and there are no more outputs. The shell stops the daemon; everything that was
 * answered is in the database, and a restart continues from there.
 */
#ifndef CV_COBROKER_CORE_H
#define CV_COBROKER_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "cobroker/batch.h"
#include "cobroker/config.h"
#include "cobroker/figures.h"
#include "common/net/identity.h"
#include "proto/codec/share.h"

struct cv_cobroker;
struct cv_cobroker_conn;

/* Creates a co-broker without campaigns. Copies the config; what it points to must outlive the co-broker.
 * CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_new(const struct cv_cobroker_config *config, struct cv_cobroker **ret);
void cv_cobroker_free(struct cv_cobroker *core);

/* ---- connections ---- */

/*
 * A peer whose certificate has been checked connects. CV_ERR_DENIED with the reason if it is a broker other than the
 * one that is expected; CV_ERR_EXISTS if its workers overlap those of another connected certificate. If the same
 * certificate is already connected, the older connection gets a goodbye and is closed. Each output carries `shell`.
 */
CV_MUST_USE enum cv_err cv_cobroker_join(struct cv_cobroker *core, const struct cv_identity *identity, void *shell,
                                         struct cv_cobroker_conn **ret, struct cv_why *why);
/* The connection is closed; its sessions stay. No later output refers to it. */
void cv_cobroker_leave(struct cv_cobroker *core, struct cv_cobroker_conn *conn);
/* Which certificates were revoked, by serial number. */
struct cv_cobroker_revoked {
  bool (*has)(const void *data, const char *serial);
  const void *data;
};
/* Ends the sessions of revoked certificates, whether or not their connections are gone: a session outlives its
 * connection, so closing that is not enough. */
void cv_cobroker_revoke(struct cv_cobroker *core, const struct cv_cobroker_revoked *revoked);
/* This co-broker's certificate has that key now. With another key than before it is another party: its campaigns end,
 * and whoever is connected gets a goodbye, to judge the new key. Returns whether it is another. */
bool cv_cobroker_renew(struct cv_cobroker *core, const struct cv_digest *key);
void *cv_cobroker_conn_shell(const struct cv_cobroker_conn *conn);

/*
 * Handles a frame. An error means that the peer broke the protocol: the shell sends the reason in a goodbye and closes
 * the connection. Effects of the frame before the error persist.
 */
CV_MUST_USE enum cv_err cv_cobroker_on_share(struct cv_cobroker *core, struct cv_cobroker_conn *conn,
                                             const struct cv_share_frame *frame, uint64_t now_ms, uint64_t wall_ms,
                                             struct cv_why *why);
/* Handles deadlines and the ends of certificates. Called several times per second. */
void cv_cobroker_tick(struct cv_cobroker *core, uint64_t now_ms, uint64_t wall_ms);
/* Whether everything that was answered is stored. A co-broker waits for nothing else when it stops. */
bool cv_cobroker_is_drained(const struct cv_cobroker *core);

/* ---- batches and outputs ---- */

/* Whether the connection has used up its share of answers since the last flush. The shell then stops reading from it
 * until the next flush. */
bool cv_cobroker_conn_is_over_share(const struct cv_cobroker *core, const struct cv_cobroker_conn *conn);
/* The number of tokens judged for the next batch; whether there is anything to store or to send. */
size_t cv_cobroker_gathered(const struct cv_cobroker *core);
bool cv_cobroker_is_pending(const struct cv_cobroker *core);
/*
 * Prepares outputs and fills `batch`, which it clears first. If *ret_store is false there is nothing to store: call
 * cv_cobroker_stored() immediately.
 */
CV_MUST_USE enum cv_err cv_cobroker_flush(struct cv_cobroker *core, uint64_t now_ms, uint64_t wall_ms,
                                          struct cv_cobroker_batch *batch, bool *ret_store);
void cv_cobroker_stored(struct cv_cobroker *core);

struct cv_cobroker_out {
  struct cv_cobroker_conn *conn;
  const struct cv_share_frame *frame; /* may exceed one wire frame: the shell splits it */
  bool close;                         /* after sending */
};
/* Returns the next output; it is valid until the next call or event. False if there is none. */
bool cv_cobroker_next_out(struct cv_cobroker *core, struct cv_cobroker_out *ret);

/* Counters since the start, and current gauges. */
void cv_cobroker_figures(const struct cv_cobroker *core, struct cv_cobroker_figures *ret);

#endif
