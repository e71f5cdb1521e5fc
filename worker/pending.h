/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that wait for their acknowledgement, found by ticket. A fixed number of entries, none of which moves. Tickets
 * are opaque: all of their bytes are hashed, with a key, so that a broker cannot choose collisions.
 */
#ifndef CV_WORKER_PENDING_H
#define CV_WORKER_PENDING_H

#include "proto/codec/crowd.h"

struct cv_pending {
  uint64_t worker, campaign;
  uint64_t batch; /* of the outbox, with which its token goes */
  uint8_t ticket[CV_TICKET_BYTES];
  uint32_t values; /* 0 = free entry */
  int64_t value[CV_VALUES_MAX];
  struct cv_pending *next; /* of its bucket, or of the free ones */
};

struct cv_pendings {
  struct cv_pending *entry;
  struct cv_pending **bucket;
  struct cv_pending *free;
  size_t entries, mask, count;
  uint64_t key;
};

/* Room for `entries`; `key` makes the places of tickets unpredictable. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_pendings_init(struct cv_pendings *pendings, size_t entries, uint64_t key);
void cv_pendings_fini(struct cv_pendings *pendings);
/* NULL when all entries are taken. The caller fills in worker, campaign and values (at least one). */
struct cv_pending *cv_pendings_add(struct cv_pendings *pendings, const uint8_t ticket[CV_TICKET_BYTES]);
struct cv_pending *cv_pendings_find(const struct cv_pendings *pendings, const uint8_t ticket[CV_TICKET_BYTES]);
void cv_pendings_remove(struct cv_pendings *pendings, struct cv_pending *pending);

#endif
