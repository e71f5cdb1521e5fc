/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third-party without its wires: what brokers send goes in, what must be stored and what may then be sent comes
 * out. No time, no I/O; random bits (only for seeds) and the digest are arguments.
 *
 * The shell's turn:
 *   cv_ranker_connected / _frame / _disconnected    any number of times
 *   cv_ranker_flush      everything since the last flush, as one batch; the frames it caused are held back
 *   (store the batch: one transaction)
 *   cv_ranker_committed  the frames of that flush may leave
 *   cv_ranker_next       until there is none
 *
 * So nothing leaves before the commit that holds its cause. One flush at a time. When storing fails the process ends:
 * the database is behind what is here, and a restart continues from it.
 *
 * Out of memory, wherever it happens, ends the core: from then on every function that can say so is CV_ERR_NOMEM,
 * cv_ranker_has_work() is true and nothing is said any more. The process ends, as when storing fails.
 *
 * A broker is never trusted: what it sends out of order, out of range or for someone else closes its connection with a
 * Goodbye that says why, and costs other brokers nothing. The protocol is docs/protocol.md.
 */
#ifndef CV_THIRDPARTY_CORE_H
#define CV_THIRDPARTY_CORE_H

#include "common/base/refusals.h"
#include "common/base/rng.h"
#include "proto/codec/rank.h"
#include "thirdparty/batch.h"

struct cv_ranker;
struct cv_ranker_link; /* one connection of a broker */

struct cv_ranker_limits {
  uint32_t campaigns;  /* open at a time, per broker */
  uint32_t arms;       /* of a campaign */
  size_t queued_wants; /* of recorded plans that wait for their turn, per broker */
};
extern const struct cv_ranker_limits CV_RANKER_DEFAULTS; /* 256, CV_ARMS_MAX, 8 Mi */

struct cv_ranker_setup {
  cv_digest_fn *digest;
  struct cv_rng *rng;
  const char *program; /* for Hello; kept */
  /* Something an operator may want to read; or NULL. `peer` limits repetitions; NULL: what limits bound already. */
  void (*note)(void *data, const char *peer, const char *line);
  void *data;
  struct cv_ranker_limits limits;
};

/* Without campaigns. The setup is copied, what it points to borrowed for as long. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_ranker_new(const struct cv_ranker_setup *setup, struct cv_ranker **ret);
void cv_ranker_free(struct cv_ranker *ranker);

/* A campaign from storage, before any connection. Takes nothing; `why` names the campaign. */
CV_MUST_USE enum cv_err cv_ranker_restore(struct cv_ranker *ranker, const struct cv_stored_campaign *stored,
                                          struct cv_why *why);

/* A broker of this name is there. An older connection of the same broker is told Goodbye. `data` is the shell's. */
CV_MUST_USE enum cv_err cv_ranker_connected(struct cv_ranker *ranker, const char *broker, void *data,
                                            struct cv_ranker_link **ret);
/* Frames for it that have not been taken are dropped; the link is gone. */
void cv_ranker_disconnected(struct cv_ranker *ranker, struct cv_ranker_link *link);
/* One decoded frame, borrowed. Only CV_ERR_NOMEM comes back; what the broker did wrong ends in a Goodbye. */
CV_MUST_USE enum cv_err cv_ranker_frame(struct cv_ranker *ranker, struct cv_ranker_link *link,
                                        const struct cv_rank_frame *frame);
/* The shell found the bytes wrong: Goodbye with this reason, counted as `kind`. */
void cv_ranker_reject(struct cv_ranker *ranker, struct cv_ranker_link *link, enum cv_refusal kind, const char *reason);

/* True if a flush would give a batch or frames. */
bool cv_ranker_has_work(const struct cv_ranker *ranker);
/* Releases taken in since the last flush: when this grows large the shell stops reading until a commit returns. */
size_t cv_ranker_backlog(const struct cv_ranker *ranker);
/* *ret_batch is the caller's to store and cv_batch_fini; it may be empty, then cv_ranker_committed follows at once. */
CV_MUST_USE enum cv_err cv_ranker_flush(struct cv_ranker *ranker, struct cv_batch *ret_batch);
void cv_ranker_committed(struct cv_ranker *ranker);

/* A frame to send. The arrays live until the next call of a cv_ranker function. */
struct cv_ranker_out {
  struct cv_ranker_link *link;
  void *data; /* of the link */
  const struct cv_rank_frame *frame;
  const char *close; /* NULL, or: close the connection after this frame, for this reason */
};
bool cv_ranker_next(struct cv_ranker *ranker, struct cv_ranker_out *ret);

/* For status: how many are open, and how many there have been. */
struct cv_ranker_counts {
  size_t brokers_connected, campaigns_open, campaigns_closed;
  uint64_t releases, decisions; /* since the process started */
  struct cv_refusals refusals;
};
void cv_ranker_count(const struct cv_ranker *ranker, struct cv_ranker_counts *ret);

#endif
