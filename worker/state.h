/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the core of the worker pool: its state, and what its parts share. */
#ifndef CV_WORKER_STATE_H
#define CV_WORKER_STATE_H

#include "worker/campaign.h"
#include "worker/core.h"
#include "worker/line.h"
#include "worker/outbox.h"
#include "worker/pending.h"
#include "worker/reasons.h"

/* The connection to the co-broker. */
struct cv_worker_co {
  bool open, hello_due, greeted;
  struct cv_digest key;                    /* of the last connection */
  uint64_t enter[CV_WORKER_CAMPAIGNS_MAX]; /* of the last frame */
};

struct cv_worker {
  struct cv_worker_config config;
  uint64_t next;          /* first worker that has not arrived yet */
  struct cv_line waiting; /* workers that arrived and have no assignment */
  struct cv_line again;   /* workers that arrive again as soon as there is room */
  struct cv_line resting; /* workers in backoff, by due time */
  bool had_rested;        /* the last one that arrived */
  uint32_t *given;        /* per worker: scores sent, or CV_GIVEN_NEVER */
  uint32_t *wish;         /* with a stock, per worker: the arm that it arrived for */
  uint8_t coin_key[CV_COIN_KEY_BYTES];
  uint8_t *here; /* per worker: waiting, resting, about to arrive, or without acknowledgement */
  uint64_t probe, probed_ms;
  bool probing; /* the only waiting worker is a probe */
  struct cv_pendings pendings;
  struct cv_worker_campaigns campaigns;
  bool open, hello_due, greeted;
  struct cv_digest broker; /* its key, of the last connection */
  struct cv_worker_co co;
  uint32_t held;    /* assignments that wait for a session */
  bool due;         /* an event or a tick came since the last flush */
  bool failed;      /* memory ran out: no further work */
  bool limit_noted; /* the first assignment beyond accept.tokens is logged, later ones are not */
  bool stall_due;   /* tokens were given, or terms told, since campaigns were searched that stand still */
  uint64_t stall_ms;
  bool has_barred;         /* a search for a probe has found this worker, whose own limit is used up, */
  uint64_t barred, missed; /* and so many workers, one after the other, that will not come */
  bool spent_due;          /* rows were given since the stock was searched for arms without rows */
  uint64_t spent_ms;
  uint32_t *spent; /* with a stock: room for the arms of a Decline; owned */
  char spent_why[CV_WHY_BYTES];
  /* Per work: what its workers have answered behind a privatizer in campaigns of its name; owned. */
  struct cv_once *asked;
  bool *met;        /* per work: an accepted requester's campaign with its name was opened */
  uint64_t late_ms; /* end of the wait for acknowledgements of done campaigns; 0: no wait */
  double allowance; /* arrivals that the rate permits now */
  uint64_t allowance_ms;
  struct cv_worker_outbox outbox;
  struct cv_reasons reasons; /* of refusals, logged so far */
  uint64_t questions;        /* asked so far: each has a number of its own */
  uint32_t unanswered;       /* assignments whose questions have not all been answered */
  struct cv_worker_figures figures;
};

/* Logs a line for the operator. */
void cv_worker_note(const struct cv_worker *pool, const char *text);
/* Whether the worker's own limit leaves it so many scores. */
bool cv_worker_may_give(const struct cv_worker *pool, uint64_t worker, uint32_t scores);
/* Whether the campaign takes another token of the worker, and the worker's own limit leaves it one: a new one, or again
 * one of a slot that it has used. */
bool cv_worker_may_answer(const struct cv_worker *pool, const struct cv_worker_campaign *campaign, uint64_t worker);
/* Whether a token that has left counts against the worker's tokens even if it filled no slot: the worker is somebody,
 * whose scores the broker must not learn. Else a broker that calls every token expired buys as many as it likes. */
bool cv_worker_discloses(const struct cv_worker *pool, const struct cv_worker_campaign *campaign);
/* Whether the worker's own limit leaves it a token of any campaign, known or not. */
bool cv_worker_may_come(const struct cv_worker *pool, uint64_t worker);
/* Declines a campaign, and drops what is held of it. */
CV_MUST_USE enum cv_err cv_worker_decline(struct cv_worker *pool, struct cv_worker_campaign *campaign,
                                          const char *reason);
/* Declines one assignment, so that the broker reassigns its place at once and not after the lease. `why` is borrowed
 * until the frame is sent. */
CV_MUST_USE enum cv_err cv_worker_decline_one(struct cv_worker *pool, const uint8_t ticket[CV_TICKET_BYTES],
                                              const char *why);
/* For a worker without an open assignment: queues its next arrival, or marks it as gone. */
CV_MUST_USE enum cv_err cv_worker_move_on(struct cv_worker *pool, uint64_t worker);
/* True if a live campaign takes another token of this worker, or if no campaign is known to be live: the broker sends
 * terms only to workers that arrive. */
bool cv_worker_is_wanted(const struct cv_worker *pool, uint64_t worker);
/* Takes the scores of a pending assignment, or asks for them; privatizes them and gives the token. */
CV_MUST_USE enum cv_err cv_worker_score(struct cv_worker *pool, struct cv_worker_campaign *campaign,
                                        const struct cv_assign *assign, struct cv_pending *pending);
/* Counts the token of a pending assignment and queues it; it stays pending until its acknowledgement. With two brokers
 * the token is split first, and held until there is a session. */
CV_MUST_USE enum cv_err cv_worker_give(struct cv_worker *pool, struct cv_worker_campaign *campaign,
                                       struct cv_pending *pending);

#endif
