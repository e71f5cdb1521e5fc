/* SPDX-License-Identifier: Apache-2.0 */
/* The outgoing messages of a pool's next frame, in arrays that grow and are reused. */
#ifndef CV_WORKER_OUTBOX_H
#define CV_WORKER_OUTBOX_H

#include <stdbool.h>

#include "proto/codec/crowd.h"
#include "worker/pending.h"

/* Arrive messages per frame, each with at most CV_ARRIVE_MOST workers; enough for all arrivals of one flush. */
enum { CV_ARRIVES_MOST = 16 };

/* All zero is empty. */
struct cv_worker_outbox {
  uint64_t *worker; /* arriving workers */
  uint32_t *wish;   /* per arriving worker: the arm it wants */
  size_t arrivals, worker_cap, wish_cap;
  struct cv_token *token;
  size_t tokens, token_cap;
  struct cv_decline *decline;
  size_t declines, decline_cap;
  struct cv_arrive arrive[CV_ARRIVES_MOST]; /* of the last frame */
  uint64_t batch;                           /* number of times the outbox was cleared */
};

void cv_worker_outbox_fini(struct cv_worker_outbox *outbox);
/* Empties the outbox; its former contents stay readable until the next addition. */
void cv_worker_outbox_clear(struct cv_worker_outbox *outbox);
/* CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_worker_outbox_arrive(struct cv_worker_outbox *outbox, uint64_t worker, uint32_t wish);
/* Adds the token of a pending assignment and borrows its values: the caller keeps `pending` until the outbox is
 * cleared. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_worker_outbox_token(struct cv_worker_outbox *outbox, struct cv_pending *pending);
/* True if the token of this assignment has not been sent. */
bool cv_worker_outbox_holds(const struct cv_worker_outbox *outbox, const struct cv_pending *pending);
/* Appends a zeroed decline, for the caller to fill in; NULL if out of memory. */
struct cv_decline *cv_worker_outbox_decline(struct cv_worker_outbox *outbox);
/* Appends a decline that names the arms, which are borrowed until the outbox is cleared. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_worker_outbox_spent(struct cv_worker_outbox *outbox, uint64_t campaign, const char *why,
                                               const uint32_t *arm, size_t arms);
/*
 * Sets *ret to one frame with the whole outbox. Each Arrive states how many assignments the pool takes at once
 * (`credit`), and with `wishes` the wanted arm of each worker. The frame has an Arrive if a worker arrives or if
 * `say_credit` is set. It is valid until the next addition.
 */
void cv_worker_outbox_frame(struct cv_worker_outbox *outbox, uint32_t credit, bool say_credit, bool wishes,
                            struct cv_crowd_frame *ret);

#endif
