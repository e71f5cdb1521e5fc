/* SPDX-License-Identifier: Apache-2.0 */
/* What a crew has to say with its next frame: arrays that grow, and are used again. */
#ifndef CV_WORKER_OUTBOX_H
#define CV_WORKER_OUTBOX_H

#include <stdbool.h>

#include "proto/codec/crowd.h"
#include "worker/pending.h"

/* All zero is empty. */
struct cv_outbox {
  uint64_t *worker; /* who arrives */
  uint32_t *wish;   /* of each of them; as many */
  size_t arrivals, worker_cap, wish_cap;
  struct cv_token *token;
  size_t tokens, token_cap;
  struct cv_decline *decline;
  size_t declines, decline_cap;
  uint64_t batch; /* so often it has been cleared */
};

void cv_outbox_fini(struct cv_outbox *outbox);
/* Empty again; what was in it stays readable until something is added. */
void cv_outbox_clear(struct cv_outbox *outbox);
/* CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_outbox_arrive(struct cv_outbox *outbox, uint64_t worker, uint32_t wish);
/* The token of a pending assignment, whose values are borrowed: it stays while it is held. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_outbox_token(struct cv_outbox *outbox, struct cv_pending *pending);
bool cv_outbox_holds(const struct cv_outbox *outbox, const struct cv_pending *pending);
/* All zero, at the end; NULL when out of memory. */
struct cv_decline *cv_outbox_decline(struct cv_outbox *outbox);

#endif
