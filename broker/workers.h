/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's or gateway's connection: the queue of waiting workers, the open assignments, and the next frame to it.
 * crowd.h handles its frames, assign.h assigns places.
 */
#ifndef CV_BROKER_WORKERS_H
#define CV_BROKER_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/dealing.h"
#include "broker/lease.h"
#include "broker/outbox.h"
#include "broker/ticket.h"
#include "common/base/err.h"

struct cv_arm;
struct cv_broker;
struct cv_broker_campaign;

enum {
  CV_CREDIT_MAX = 8192, /* open assignments of a connection */
  CV_SHARE_MIN = 64,    /* places of an arm that any connection may hold */
  CV_PENALTY_MAX = 16,  /* how often the share of a silent connection is halved at most */
  CV_PENALTY_NEW = 3,   /* how often the share of a new connection is halved */
  CV_GATHER_ALL = 2048, /* unproductive answers between two flushes, of all connections together ... */
  CV_GATHER_LEAST = 64, /* ... but at least so many per connection */
};

/* A worker that has arrived, and the only arm it accepts; CV_WISH_NONE: any. */
struct cv_waiting {
  uint64_t worker;
  uint32_t wish;
};

struct cv_broker_workers {
  uint32_t credit;            /* open assignments that the peer accepts at a time */
  uint32_t penalty, answered; /* tokens accepted since the penalty changed */
  struct cv_waiting *waiting; /* ring of workers; owned */
  uint32_t wish;              /* wish of the worker being assigned */
  uint32_t waiting_count;
  size_t waiting_cap, waiting_head;
  struct cv_leases leases;
  struct cv_dealings dealings;
  uint32_t waits; /* tokens of campaigns with two brokers that wait for their acknowledgement; they count as open */
  struct cv_broker_outbox gather, ready; /* for the next batch; for the batch being stored */
  size_t gathered; /* unproductive answers in `gather`: tokens not accepted, workers turned away */
};

/* On the heap; NULL if out of memory. */
struct cv_broker_workers *cv_broker_workers_new(void);
void cv_broker_workers_free(struct cv_broker_workers *workers);

/* The number of unproductive answers that a connection may get between two flushes. */
size_t cv_broker_workers_share(const struct cv_broker *broker);
/* The number of places of one arm that this connection may hold: its fair share, halved for each penalty. */
uint32_t cv_broker_workers_places(const struct cv_broker *broker, const struct cv_broker_workers *workers,
                                  const struct cv_arm *arm);
/* Counts an accepted token: after as many tokens as its share, the connection's share doubles. */
void cv_broker_workers_reward(struct cv_broker_workers *workers);

/*
 * Tells one worker to come again after `delay_ms` (0: never for this campaign), with a reason; consecutive equal
 * answers share one message. `why` is a literal; `campaign` 0 means all campaigns. CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_broker_workers_turn_away(struct cv_broker *broker, struct cv_broker_workers *workers,
                                                    uint64_t worker, uint32_t delay_ms, uint64_t campaign,
                                                    const char *why);
/* Appends the worker to the queue, or turns it away if the queue is full. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_workers_wait(struct cv_broker *broker, struct cv_broker_workers *workers,
                                               struct cv_waiting who);
/* Sends the end of the campaign to every connection that knows the campaign. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_workers_tell_done(struct cv_broker *broker,
                                                    const struct cv_broker_campaign *campaign);
/* Makes the gathered frame ready to be sent, and starts a new one. */
void cv_broker_workers_swap(struct cv_broker_workers *workers);

/* Ends the lease; its place becomes free again unless it is filled. Running out of memory ends the core. */
void cv_broker_workers_end_lease(struct cv_broker *broker, struct cv_broker_workers *workers, uint32_t at);
/* The same for the lease under which the ticket was issued, if it is still open. */
void cv_broker_workers_end_lease_of(struct cv_broker *broker, struct cv_broker_workers *workers,
                                    const struct cv_ticket *ticket);
/* Ends expired leases, each time halving the share, and offers places of overdue leases to other workers. */
void cv_broker_workers_expire(struct cv_broker *broker, struct cv_broker_workers *workers, uint64_t now_ms);
void cv_broker_workers_return_all(struct cv_broker *broker, struct cv_broker_workers *workers);

#endif
