/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon's turn: events -> batch -> commit -> send. Only this module orders commit and send, for all daemons:
 * nothing is sent before the commit that contains its cause. Pure: loop, disk and timer are behind struct cv_turn_ops.
 *
 * Only one batch is stored at a time; meanwhile the daemon gathers events for the next one. A large batch goes to the
 * storage thread, and the next one is gathered for some time (paced). A small batch, for which peers wait, is committed
 * on the loop while the disk is fast.
 *
 * The first failure is final: after it no batch is closed, stored or sent.
 */
#ifndef CV_DAEMON_TURN_H
#define CV_DAEMON_TURN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

struct cv_turn_ops {
  /* Called while no batch is being stored, for other use of the disk. May fail the turn. May be NULL. */
  void (*between)(void *data);
  /* Whether anything waits to be stored or sent; and the size of the batch so far, in the party's unit (NULL: always
   * 0). */
  bool (*is_pending)(void *data);
  size_t (*gathered)(void *data);
  /* After a flush: true if the rest of one peer's large request is pending; the next batch is then paced, so that
   * other peers come first. NULL: never. */
  bool (*has_rest)(void *data);
  /* Closes the batch; later events belong to the next one. *ret_store: the batch is not empty. The only error is
   * CV_ERR_NOMEM. */
  enum cv_err (*flush)(void *data, bool *ret_store);
  /* Stores the batch synchronously. */
  enum cv_err (*commit)(void *data, struct cv_why *why);
  /* Stores the batch on the storage thread; cv_turn_committed() follows, never from inside this call. NULL: there is
   * no thread. */
  void (*hand_over)(void *data);
  /* Whether the disk is fast enough to commit a small batch on the loop. */
  bool (*is_quick)(void *data);
  /* The batch is stored, or was empty: sends what depends on it. */
  void (*say)(void *data);
  /* Starts the pacing timer; cv_turn_paced() follows. NULL: no pacing. */
  void (*pace)(void *data);
  /* Called once: the daemon logs the failure and stops. */
  void (*fail)(void *data, const char *what, const struct cv_why *why);
};

struct cv_turn {
  const struct cv_turn_ops *ops;
  void *data;
  size_t crowd; /* batch size from which a batch counts as large */
  size_t full;  /* batch size from which a batch is not paced; at least `crowd` */
  /* private */
  bool busy, paced, failed;
};

/* Call after events or time have changed the core: stores and sends what is ready. This and the next two functions
 * must not be called from inside an op. */
void cv_turn_over(struct cv_turn *turn);
/* The handed-over commit has ended with `err`; continues. */
void cv_turn_committed(struct cv_turn *turn, enum cv_err err, const struct cv_why *why);
/* The pacing time is over; continues. */
void cv_turn_paced(struct cv_turn *turn);
/*
 * Reserves the storage for other work than a batch, on any thread: batches wait until cv_turn_give_back(), which
 * continues. False, and nothing is reserved, while a batch is being stored or after a failure. Of the ops only
 * `between` may call it.
 */
CV_MUST_USE bool cv_turn_take(struct cv_turn *turn);
void cv_turn_give_back(struct cv_turn *turn);
/* Reports a failure outside the turn. */
void cv_turn_fail(struct cv_turn *turn, const char *what, const struct cv_why *why);

/* True while the storage thread stores a batch, or the storage is reserved. */
static inline bool cv_turn_is_busy(const struct cv_turn *turn) {
  return turn->busy;
}
static inline bool cv_turn_has_failed(const struct cv_turn *turn) {
  return turn->failed;
}

#endif
