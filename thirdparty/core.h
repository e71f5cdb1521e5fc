/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core of the third-party: takes the frames of brokers and returns batches to store and frames to send after that.
 * No time, no I/O; random bits (only for seeds) and the digest are arguments.
 *
 * The shell's turn:
 *   cv_thirdparty_join / _on_rank / _leave   any number of times
 *   cv_thirdparty_flush                      returns all changes since the last flush as one batch; holds its frames
 *   (store the batch: one transaction)
 *   cv_thirdparty_stored                     the frames of that flush may leave
 *   cv_thirdparty_next_out                   until there is none
 *
 * So no frame leaves before the commit of its cause. Only one flush may be open at a time. If storing fails, the
 * process must end: the database is behind the core, and a restart continues from the database.
 *
 * Running out of memory ends the core: from then on every function with an error result returns CV_ERR_NOMEM,
 * cv_thirdparty_is_pending() returns true and the core sends nothing. The process must end, as when storing fails.
 *
 * A broker is never trusted: what it sends out of order, out of range or for another broker closes its connection with
 * a Goodbye that says why, and costs other brokers nothing. The protocol is docs/protocol.md.
 */
#ifndef CV_THIRDPARTY_CORE_H
#define CV_THIRDPARTY_CORE_H

#include "common/base/log_line.h"
#include "common/base/refusals.h"
#include "common/base/rng.h"
#include "proto/codec/rank.h"
#include "thirdparty/batch.h"

struct cv_thirdparty;
struct cv_thirdparty_conn; /* a connection of one broker */

struct cv_thirdparty_limits {
  uint32_t campaigns;  /* open campaigns per broker */
  uint32_t arms;       /* arms per campaign */
  size_t queued_wants; /* wants in queued recorded plans, per broker */
};
extern const struct cv_thirdparty_limits CV_THIRDPARTY_DEFAULTS; /* 256, CV_ARMS_MAX, 8 Mi */

/* A broker's connection as its hello, or its end, has just made it. */
struct cv_thirdparty_link {
  const char *broker;
  bool is_connected;
  uint64_t term; /* as the broker says; 0: it has no terms */
};

struct cv_thirdparty_config {
  cv_digest_fn *digest;
  struct cv_rng *rng;
  const char *program; /* program name for Hello; borrowed */
  /* Logs a line for the operator; may be NULL. A line without a peer is about an event whose number the limits above
   * bound. */
  void (*note)(void *data, const struct cv_note *note);
  /* Shows a change of a broker's connection; may be NULL. */
  void (*linked)(void *data, const struct cv_thirdparty_link *link);
  void *data; /* of both */
  struct cv_thirdparty_limits limits;
};

/* Makes a core without campaigns. Copies *setup and borrows what it points to until cv_thirdparty_free().
 * CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_thirdparty_new(const struct cv_thirdparty_config *setup, struct cv_thirdparty **ret);
void cv_thirdparty_free(struct cv_thirdparty *thirdparty);

/* Adds a campaign from storage; call before the first connection. Borrows `stored` for the call; `why` names the
 * campaign. */
CV_MUST_USE enum cv_err cv_thirdparty_restore(struct cv_thirdparty *thirdparty, const struct cv_stored_campaign *stored,
                                              struct cv_why *why);

/* A broker connected; cv_thirdparty_next_out() returns `data`. Its older connection, if any, gets a goodbye. */
CV_MUST_USE enum cv_err cv_thirdparty_join(struct cv_thirdparty *thirdparty, const char *broker, void *data,
                                           struct cv_thirdparty_conn **ret);
/* The connection closed: drops its unsent frames and frees `conn`. */
void cv_thirdparty_leave(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn);
/* Takes in one decoded frame, borrowed for the call. Returns only CV_OK or CV_ERR_NOMEM: a mistake of the broker ends
 * its connection with a goodbye. */
CV_MUST_USE enum cv_err cv_thirdparty_on_rank(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn,
                                              const struct cv_rank_frame *frame);

/* True if a flush would return a batch or cause frames. */
bool cv_thirdparty_is_pending(const struct cv_thirdparty *thirdparty);
/* The number of releases taken in since the last flush. The shell stops reading while it is large. */
size_t cv_thirdparty_gathered(const struct cv_thirdparty *thirdparty);
/* The caller stores *ret_batch, calls cv_thirdparty_stored() and frees the batch with cv_thirdparty_batch_fini(). If
 * the batch is empty, cv_thirdparty_stored() follows at once. */
CV_MUST_USE enum cv_err cv_thirdparty_flush(struct cv_thirdparty *thirdparty, struct cv_thirdparty_batch *ret_batch);
void cv_thirdparty_stored(struct cv_thirdparty *thirdparty);

/* A frame to send. The arrays live until the next call of a cv_thirdparty function. */
struct cv_thirdparty_out {
  struct cv_thirdparty_conn *conn;
  void *data; /* of the connection */
  const struct cv_rank_frame *frame;
  const char *close; /* NULL, or: close the connection after this frame, for this reason */
};
bool cv_thirdparty_next_out(struct cv_thirdparty *thirdparty, struct cv_thirdparty_out *ret);

/* Counts for the metrics. */
struct cv_thirdparty_figures {
  size_t brokers_connected, campaigns_open, campaigns_closed;
  uint64_t releases, decisions, contradictions; /* since the process started; contradictions: arms */
  struct cv_refusals refusals;
};
void cv_thirdparty_figures(const struct cv_thirdparty *thirdparty, struct cv_thirdparty_figures *ret);

#endif
