/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core of a worker pool: a range of virtual workers on one connection; a single worker is a range of one. Pure:
 * time and randomness are arguments.
 *
 * Each worker arrives, waits for an assignment, scores, privatizes, sends its token and waits for the acknowledgement.
 * Then it leaves, or arrives again while a campaign takes more tokens from it. The pool keeps an unacknowledged token
 * and sends the same token again on the next connection.
 *
 *   opened -> events -> cv_worker_flush() -> send -> ... -> closed -> opened again -> ...
 *
 * Running out of memory ends the pool: from then on cv_worker_on_crowd() returns CV_ERR_NOMEM, cv_worker_flush()
 * returns false and cv_worker_has_failed() returns true. The shell stops the process, and the broker assigns the open
 * places to other workers.
 */
#ifndef CV_WORKER_CORE_H
#define CV_WORKER_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/codec/crowd.h"
#include "worker/accept.h"
#include "worker/quality/moment.h"
#include "worker/stock.h"

struct cv_worker;

/* The scores of one campaign; borrowed. */
struct cv_work {
  const char *campaign; /* campaign name, unique among the works */
  uint32_t arms;        /* number of arms with scores */
  bool pairs;           /* its scores are comparisons with an opponent */
  bool hires;           /* each arm is one worker, and only that worker may answer for it: keep all of them waiting */
  /* Sets the score of a token; CV_ERR_LIMIT if the data of the arm have no row for this place, nor for a later one: the
   * pool tells the broker. */
  enum cv_err (*score)(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score);
  void *data;
};

struct cv_worker_config {
  uint64_t first, last; /* ids of the workers, both included */
  uint32_t concurrency; /* assignments held at once, 1 .. 8192 */
  double arrival_rate;  /* workers per second; 0 = as fast as the broker assigns them */
  struct cv_accept accept;
  const struct cv_work *work; /* `works` of them, at least one; each serves any accepted requester */
  size_t works;
  /* Set if each worker has rows of its own and answers only with them, else NULL. With a stock there is exactly one
   * work, and the core does not call its `score`. */
  struct cv_stock *stock;
  /* Per worker from `first` on: scores given in earlier runs; NULL: none. */
  const uint32_t *given;
  /* Reports a worker's new total of scores given. The token leaves with the next flush; the shell must store the total
   * before it sends that frame. NULL: totals are not stored. */
  void (*give)(void *data, uint64_t worker, uint32_t scores);
  void *give_data;
  struct cv_rng *rng; /* for the privatizer */
  /* Unsafe, for tests: a token's value is a function of (privatizer_seed, arm, place) instead. */
  bool privatizer_seeded;
  uint64_t privatizer_seed;
  /* Unsafe, for teaching: is told each score and the token that is made of it, in grid units. NULL, else. */
  void (*show)(void *data, uint64_t worker, uint32_t arm, int64_t score, int64_t value);
  /* Logs one line for the operator; may be NULL. `note_data` is of `show`, too. */
  void (*note)(void *data, const char *text);
  void *note_data;
};

struct cv_worker_figures {
  uint64_t accepted, duplicates, expired, refused;
  uint32_t campaigns; /* whose terms the pool accepted */
};

/* Borrows what the config points to until cv_worker_free(). CV_ERR_INVALID with the reason, or CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_worker_new(const struct cv_worker_config *config, struct cv_worker **ret,
                                      struct cv_why *why);
void cv_worker_free(struct cv_worker *pool);

/* Connection opened: queues every unacknowledged token again. Connection closed: waiting workers will arrive again. */
void cv_worker_join(struct cv_worker *pool, uint64_t now_ms);
void cv_worker_leave(struct cv_worker *pool);
/*
 * Takes in one frame of the broker. An error other than CV_ERR_NOMEM means that the broker broke the protocol, for
 * example a message before its hello, an assignment for a worker that did not arrive or for an unknown arm, or more
 * assignments for a worker than the terms allow. The shell then closes the connection with the reason.
 */
CV_MUST_USE enum cv_err cv_worker_on_crowd(struct cv_worker *pool, const struct cv_crowd_frame *frame, uint64_t now_ms,
                                           struct cv_why *why);
/* Call several times a second: workers in backoff may be due, and the arrival rate may permit arrivals. */
void cv_worker_tick(struct cv_worker *pool);
/* True if an event or a tick came since the last flush. */
bool cv_worker_is_pending(const struct cv_worker *pool);
/*
 * Sets *ret to the frame to send now; returns false if there is none. *ret points into the pool's memory and is valid
 * until the next call of any cv_worker function. It may exceed the frame size limit: the shell splits it.
 */
bool cv_worker_flush(struct cv_worker *pool, uint64_t now_ms, struct cv_crowd_frame *ret);

/* True once memory has run out. The shell checks it after each turn. */
bool cv_worker_has_failed(const struct cv_worker *pool);

/*
 * True if every token is acknowledged and one of these holds: the pool has met a campaign of an accepted requester for
 * each of its works, and all of them are done or declined; or no worker can give another token (with a stock: no
 * worker has a row that a campaign may want).
 */
bool cv_worker_is_done(const struct cv_worker *pool);
void cv_worker_figures(const struct cv_worker *pool, struct cv_worker_figures *ret);

#endif
