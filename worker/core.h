/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection that speaks for a range of virtual workers; a single worker is a range of one. Pure: time and
 * randomness are arguments.
 *
 * Each worker arrives, waits for an assignment, scores, privatizes, sends its token, and leaves once that is
 * acknowledged, or arrives again while a campaign takes more of it. A token that is not acknowledged is kept and sent
 * again, the same, on the next connection.
 *
 *   opened -> events -> cv_crew_flush() -> send -> ... -> closed -> opened again -> ...
 *
 * Out of memory, wherever it happens, ends the crew: from then on cv_crew_frame() is CV_ERR_NOMEM, cv_crew_flush()
 * gives nothing and cv_crew_has_failed() is true. The shell stops the process; what it owed will be asked of others.
 */
#ifndef CV_WORKER_CORE_H
#define CV_WORKER_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/codec/crowd.h"
#include "worker/accept.h"
#include "worker/quality/moment.h"
#include "worker/stock.h"

struct cv_crew;

/* A campaign that there are scores for; borrowed. */
struct cv_work {
  const char *campaign; /* its name: no other work has it */
  uint32_t arms;        /* that there are scores for */
  bool hires;           /* each arm is one worker, who alone may be asked for it: all of them wait */
  /* The score of a token; CV_ERR_LIMIT when the data have run out. */
  enum cv_err (*score)(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score);
  void *data;
};

struct cv_crew_config {
  uint64_t first, last; /* ids of the workers, both included */
  uint32_t concurrency; /* assignments held at once, 1 .. 8192 */
  double arrival_rate;  /* workers a second; 0 = as fast as they are taken */
  struct cv_accept accept;
  const struct cv_work *work; /* `works` of them, at least one; whichever requester's, of those that are accepted */
  size_t works;
  /* Where each worker has rows of its own and answers with these alone, else NULL; then there is one work, whose
   * `score` is not asked. */
  struct cv_stock *stock;
  /* What each worker has given in earlier runs, in scores, from the first on; NULL: nothing. */
  const uint32_t *given;
  /* A worker comes to have given so many. The token leaves with the next flush: the shell keeps the count before that.
   * NULL: nobody keeps it. */
  void (*give)(void *data, uint64_t worker, uint32_t scores);
  void *give_data;
  struct cv_rng *rng; /* for the privatizer */
  /* Unsafe, for tests: a token's value is a function of (privatizer_seed, arm, place) instead. */
  bool privatizer_seeded;
  uint64_t privatizer_seed;
  /* One line about what a person may want to know; may be NULL. */
  void (*note)(void *data, const char *text);
  void *note_data;
};

struct cv_crew_figures {
  uint64_t accepted, duplicates, expired, refused;
  uint32_t campaigns; /* taken part in */
};

/* What the config points to is borrowed for as long. CV_ERR_INVALID with the reason, or CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_crew_new(const struct cv_crew_config *config, struct cv_crew **ret, struct cv_why *why);
void cv_crew_free(struct cv_crew *crew);

/* The connection is there, and its tokens without an answer are sent again; or is gone, and so is who waited. */
void cv_crew_opened(struct cv_crew *crew, uint64_t now_ms);
void cv_crew_closed(struct cv_crew *crew);
/*
 * An error means that the broker broke the protocol (it spoke before its hello, assigned to who did not ask or an arm
 * that is not there, asked a worker for more tokens than its own terms say, ...): the shell closes with the reason.
 */
CV_MUST_USE enum cv_err cv_crew_frame(struct cv_crew *crew, const struct cv_crowd_frame *frame, uint64_t now_ms,
                                      struct cv_why *why);
/*
 * What is to be sent now; false if nothing is. Points into the crew's memory until the next call of any kind; may be
 * larger than a frame, the shell cuts it.
 */
bool cv_crew_flush(struct cv_crew *crew, uint64_t now_ms, struct cv_crowd_frame *ret);

/* Memory has run out; to be asked after each turn. */
bool cv_crew_has_failed(const struct cv_crew *crew);

/*
 * Nothing is without acknowledgement, and: it has met a campaign for each of its works, and those are over or declined,
 * or no worker has a token left to give (with a stock: no row for which a token may be wanted). What other requesters
 * call by the same name has not been met.
 */
bool cv_crew_is_done(const struct cv_crew *crew);
void cv_crew_figures(const struct cv_crew *crew, struct cv_crew_figures *ret);

#endif
