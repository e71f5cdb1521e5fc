/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open assignments and unacknowledged tokens, found by ticket. The number of entries is fixed, and entries do not move.
 * The table hashes all bytes of a ticket with a secret key, so that a broker cannot choose collisions.
 */
#ifndef CV_WORKER_PENDING_H
#define CV_WORKER_PENDING_H

#include "proto/codec/crowd.h"

struct cv_pending {
  uint64_t worker, campaign;
  uint64_t batch; /* batch of the outbox that its token was added to */
  uint8_t ticket[CV_TICKET_BYTES];
  uint32_t values; /* 0 = free entry */
  int64_t value[CV_VALUES_MAX];
  /* Of an assignment whose scores come later (asked.h): the number of its first question, 0 for others; the questions
   * without an answer; and the end of its lease. */
  uint64_t question, due_ms;
  uint32_t open;
  struct cv_pending *next; /* in its bucket, or in the free list */
};

struct cv_pendings {
  struct cv_pending *entry;
  struct cv_pending **bucket;
  struct cv_pending *free;
  size_t entries, mask, count;
  uint64_t key;
};

/* Allocates `entries` entries; `key` is the random key of the hash. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_pendings_init(struct cv_pendings *pendings, size_t entries, uint64_t key);
void cv_pendings_fini(struct cv_pendings *pendings);
/* Takes a free entry; NULL if all are in use. The caller fills in worker, campaign and values (at least one). */
struct cv_pending *cv_pendings_add(struct cv_pendings *pendings, const uint8_t ticket[CV_TICKET_BYTES]);
struct cv_pending *cv_pendings_find(const struct cv_pendings *pendings, const uint8_t ticket[CV_TICKET_BYTES]);
void cv_pendings_remove(struct cv_pendings *pendings, struct cv_pending *pending);

#endif
