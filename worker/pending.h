/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open assignments and unacknowledged tokens, found by ticket. The number of entries is fixed, and entries do not move.
 * The table hashes all bytes of a ticket with a secret key, so that a broker cannot choose collisions.
 */
#ifndef CV_WORKER_PENDING_H
#define CV_WORKER_PENDING_H

#include <stdbool.h>

#include "proto/codec/crowd.h"

/* What an assignment of a campaign with two brokers waits for: its session, before the score is taken, or after. */
enum cv_waits { CV_WAITS_NOT, CV_WAITS_TO_SCORE, CV_WAITS_TO_SPLIT };

/* Of such a campaign: the assignment, and the token's shares once they are made. */
struct cv_pending_split {
  struct cv_assign assign;
  struct cv_token_share share;
  uint8_t leader[CV_SPLIT_LEADER_MOST];
};

struct cv_pending {
  uint64_t worker, campaign;
  uint64_t batch; /* batch of the outbox that its token was added to */
  uint8_t ticket[CV_TICKET_BYTES];
  uint32_t values;             /* 0 = free entry */
  uint32_t opponent;           /* as in the assignment, like the next */
  uint32_t arm[CV_VALUES_MAX]; /* of each value */
  bool is_disclosed;           /* its token has told what it can tell, whatever the broker does with it */
  int64_t value[CV_VALUES_MAX];
  uint64_t due_ms; /* end of its lease */
  uint32_t lease_ms;
  /* Of an assignment whose scores come later (asker.h): the number of its first question, 0 for others; and the
   * questions without an answer. */
  uint64_t question;
  uint32_t open;
  enum cv_waits waits;
  struct cv_pending_split *split; /* NULL: one broker */
  struct cv_pending *next;        /* in its bucket, or in the free list */
};

struct cv_pendings {
  struct cv_pending *entry;
  struct cv_pending_split *split; /* one for each entry; NULL until cv_pendings_split() */
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
/* Makes the memory for shares, once: a pool without a campaign with two brokers has none. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_pendings_split(struct cv_pendings *pendings);
/* The entry has a token, which may have been sent. */
bool cv_pending_has_token(const struct cv_pending *pending);

#endif
