/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core of a worker pool: a range of virtual workers on one connection to the broker, and one to its co-broker for
 * campaigns with two brokers; a single worker is a range of one. Pure: time and randomness are arguments.
 *
 * Each worker arrives, waits for an assignment, scores, privatizes, sends its token and waits for the acknowledgement.
 * Then it leaves, or arrives again while a campaign takes more tokens from it. The pool keeps an unacknowledged token
 * and sends the same token again on the next connection.
 *
 *   opened -> events -> cv_worker_flush() -> send -> ... -> closed -> opened again -> ...
 *
 * Of a campaign with two brokers a token leaves only after the co-broker has told the same terms as the broker and
 * begun a session, and then in two shares (split.h). An assignment is held for as long, and declined when its lease is
 * nearly over.
 *
 *   co-broker opened -> cv_worker_flush_share() -> send -> events -> ... -> closed -> opened again -> ...
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
#include "worker/coin.h"
#include "worker/quality/moment.h"
#include "worker/session.h"
#include "worker/stock.h"

struct cv_worker;

/* The scores of one campaign; borrowed. */
struct cv_work {
  const char *campaign;    /* campaign name, unique among the works */
  uint32_t arms;           /* number of arms with scores */
  const char *const *name; /* of each arm; the core does not use them */
  struct cv_digest items;  /* of the names, in order, and of `pairs`; the core does not use it */
  bool pairs;              /* its scores are comparisons with an opponent */
  uint64_t print;          /* its scores are those of a data file with this fingerprint; 0: they are not ... */
  const char *file;        /* ... its path, which the core does not use, ... */
  const char *real_file;   /* ... and the one without symbolic links, which is the same under all names */
  struct cv_scale scale;   /* ... their declared scale; none: a range of their own */
  bool is_drawn;           /* its scores are rows of a file that may be drawn again and again */
  bool is_part;            /* ... a part of its rows, which leave in an order of their own, whatever the place is */
  bool hires; /* each arm is one worker, and only that worker may answer for it: keep all of them waiting */
  /* Of a data file: the number of the row, among those of the arm, that has the score of this place. NULL: each place
   * is an opinion of its own. */
  uint64_t (*row)(void *data, uint32_t arm, uint64_t place);
  /* Sets the score of a token; CV_ERR_LIMIT if the data of the arm have no row for this place, nor for a later one: the
   * pool tells the broker. */
  enum cv_err (*score)(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score);
  void *data;
};

/* ---- scores that come later ---- */

/* A question to a source that answers later, such as a program or a person. */
struct cv_question {
  uint64_t number; /* from 1, each of this pool once */
  uint64_t worker;
  uint32_t arm;
  uint32_t opponent; /* 1 + the arm that it is compared with: the score is 1 if `arm` is better, else 0; 0: none */
  uint64_t due_ms;   /* monotonic: the broker then asks another worker, and the pool withdraws the question */
  /* Borrowed during the call. */
  const struct cv_terms *terms;
  const struct cv_local *law; /* of the campaign's privatizer */
  const struct cv_work *work;
};

struct cv_score_answer {
  bool is_token; /* the source has privatized the score itself */
  int64_t value; /* score in [0, CV_GRID], or token value; in grid units */
  uint32_t arm;  /* set by the pool */
};

enum cv_withdrawn {
  CV_WITHDRAWN_LATE,   /* the lease is over: the broker asks another worker */
  CV_WITHDRAWN_OVER,   /* the campaign takes no more scores */
  CV_WITHDRAWN_PASSED, /* another question of the same assignment was passed */
};

/* A source that answers later. Its functions must not call the pool, but for cv_worker_answer() and cv_worker_pass()
 * outside of them. */
struct cv_asker {
  void (*ask)(void *data, const struct cv_question *question);
  /* No answer to the question is taken any more. */
  void (*withdraw)(void *data, uint64_t question, enum cv_withdrawn why);
  /* The broker's verdict on the token of an answered question. CV_VERDICT_NONE: the campaign ended without one. */
  void (*told)(void *data, uint64_t question, enum cv_verdict verdict);
  /* The number of further questions that it can take now: so many workers wait at the broker. NULL: no bound. */
  uint32_t (*room)(void *data);
  bool (*knows)(void *data, uint64_t worker); /* whether the worker can ever answer; NULL: all can */
  bool waits;                                 /* a worker arrives only after cv_worker_come() */
  void *data;
};

/*
 * The record of the rows of data files, and of the answers of people and programs. The shell stores what it is told
 * before the next frame leaves.
 */
struct cv_worker_record {
  /*
   * A campaign wants the rows of the work. CV_ERR_DENIED, with the reason to decline it, if each row has given as many
   * tokens as its owner allows, to other campaigns or under another law (cv_coin_law()). Of a part, ret_taken[] are
   * the rows of each arm that have left to this campaign before; else NULL.
   */
  enum cv_err (*serve)(void *data, const struct cv_work *work, const struct cv_terms *terms, uint64_t law,
                       uint64_t *ret_taken, struct cv_why *why);
  /* Of a part: so many rows of the arm have left to the campaign. */
  void (*take)(void *data, const struct cv_work *work, const struct cv_terms *terms, uint32_t arm, uint64_t taken);
  /*
   * Of people and programs: calls tell() for each question that a worker has answered in the campaign, or, `terms`
   * NULL, behind a privatizer in any campaign of the work's name; the number of a question as in
   * common/base/answered.h. CV_ERR_DENIED, with the reason to decline the campaign, if these were about other items of
   * that name. Errors of tell() and of the store.
   */
  enum cv_err (*answered)(void *data, const struct cv_work *work, const struct cv_terms *terms,
                          enum cv_err (*tell)(void *to, uint64_t worker, uint64_t question), void *to,
                          struct cv_why *why);
  /* Likewise: the worker has answered the question. Not `is_answered`: its token counted for nothing, and it may be
   * asked again. */
  void (*answer)(void *data, const struct cv_work *work, const struct cv_terms *terms, uint64_t worker,
                 uint64_t question, bool is_answered);
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
  const struct cv_worker_record *record; /* NULL: none is kept, and no work is a part. Borrowed */
  /* Set if scores come later, else NULL. The core then calls neither a work's `score` nor the stock. Borrowed. */
  const struct cv_asker *asker;
  /* Per worker from `first` on: scores given in earlier runs; NULL: none. */
  const uint32_t *given;
  /* Reports a worker's new total of scores given. The token leaves with the next flush; the shell must store the total
   * before it sends that frame. NULL: totals are not stored. */
  void (*give)(void *data, uint64_t worker, uint32_t scores);
  void *give_data;
  struct cv_rng *rng; /* for the privatizer, of answers that come later */
  /* The key of the coins of scores that do not change, CV_COIN_KEY_BYTES; NULL: a random one, for this pool's life. */
  const uint8_t *coin_key;
  const struct cv_session_ops *session; /* NULL: accept.pairs is empty. Borrowed */
  /* Unsafe, for teaching: is told each score and the token that is made of it, in grid units. NULL, else. */
  void (*show)(void *data, uint64_t worker, uint32_t arm, int64_t score, int64_t value);
  /* The same, with two brokers: the two shares of that token, as they leave. NULL, else. */
  void (*show_shares)(void *data, uint64_t worker, const struct cv_token_share *share);
  /* Is told why no worker of the pool may give a campaign another token, for its own limits; may be NULL. */
  void (*stalled)(void *data, const char *campaign, const char *why);
  /* Logs one line for the operator; may be NULL. `note_data` is of `stalled`, `show` and `show_shares`, too. */
  void (*note)(void *data, const char *text);
  void *note_data;
};

struct cv_worker_figures {
  uint64_t accepted, duplicates, expired, refused;
  uint64_t asked, late, passed; /* questions to a source that answers later; assignments withdrawn and declined */
  uint32_t campaigns;           /* whose terms the pool accepted */
  uint32_t sessions;            /* with the co-broker, now */
  uint64_t unheld;              /* assignments declined since no session came in time */
};

/* Borrows what the config points to until cv_worker_free(). CV_ERR_INVALID with the reason, or CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_worker_new(const struct cv_worker_config *config, struct cv_worker **ret,
                                      struct cv_why *why);
void cv_worker_free(struct cv_worker *pool);

/* Connection opened, to the broker with this key: queues every unacknowledged token again. Connection closed: waiting
 * workers will arrive again. */
void cv_worker_join(struct cv_worker *pool, const struct cv_digest *broker, uint64_t now_ms);
void cv_worker_leave(struct cv_worker *pool);
/*
 * Takes in one frame of the broker. An error other than CV_ERR_NOMEM means that the broker broke the protocol, for
 * example a message before its hello, an assignment for a worker that did not arrive or for an unknown arm, or more
 * assignments for a worker than the terms allow. The shell then closes the connection with the reason.
 */
CV_MUST_USE enum cv_err cv_worker_on_crowd(struct cv_worker *pool, const struct cv_crowd_frame *frame, uint64_t now_ms,
                                           struct cv_why *why);

/* The same for the connection to the co-broker: sessions end with it. What it says may decline campaigns and give
 * tokens, so the broker's frame is flushed after it, too. */
void cv_worker_join_co(struct cv_worker *pool, const struct cv_digest *cobroker);
void cv_worker_leave_co(struct cv_worker *pool);
CV_MUST_USE enum cv_err cv_worker_on_share(struct cv_worker *pool, const struct cv_share_frame *frame, uint64_t now_ms,
                                           struct cv_why *why);
bool cv_worker_flush_share(struct cv_worker *pool, uint64_t now_ms, struct cv_share_frame *ret);

/* Call several times a second: workers in backoff may be due, and the arrival rate may permit arrivals. */
void cv_worker_tick(struct cv_worker *pool);
/* True if an event or a tick came since the last flush. */
bool cv_worker_is_pending(const struct cv_worker *pool);
/*
 * Sets *ret to the frame to send now; returns false if there is none. *ret points into the pool's memory and is valid
 * until the next call of any cv_worker function. It may exceed the frame size limit: the shell splits it.
 */
bool cv_worker_flush(struct cv_worker *pool, uint64_t now_ms, struct cv_crowd_frame *ret);

/*
 * For a pool with an asker. cv_worker_answer() takes the answer to a question, once. CV_ERR_NOT_FOUND if the question
 * is not open (withdrawn, or answered before), CV_ERR_INVALID if there is no such score or token; the question then
 * stays open.
 */
CV_MUST_USE enum cv_err cv_worker_answer(struct cv_worker *pool, uint64_t question,
                                         const struct cv_score_answer *answer, struct cv_why *why);
/* There is no answer: declines the assignment. Its worker arrives again after `again_ms` (monotonic), if workers do not
 * wait for cv_worker_come(). `reason` is static. Nothing if the question is not open. */
void cv_worker_pass(struct cv_worker *pool, uint64_t question, const char *reason, uint64_t again_ms);
/* The worker is there for one question. False if no campaign takes another score of it. */
bool cv_worker_come(struct cv_worker *pool, uint64_t worker);
/* accept.tokens, if the worker has given as many scores; else 0. */
uint64_t cv_worker_used_limit(const struct cv_worker *pool, uint64_t worker);

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
