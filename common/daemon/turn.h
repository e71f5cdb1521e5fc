/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon's turn: events -> batch -> commit -> what is said. The one place that knows the order of commit and send,
 * for all three daemons: nothing leaves before the commit that holds its cause. Pure: loop, disk and timer are the
 * daemon's, behind struct cv_turn_ops.
 *
 * One batch at a time. While it is being stored elsewhere the daemon goes on taking in what belongs to the next one.
 * A crowd's batch is handed to the storage thread, and after it the next one is gathered for a while; for a small one
 * somebody waits, and it is stored here while the disk is quick.
 *
 * The first failure is the last thing that happens: from then on nothing is closed, stored or said.
 */
#ifndef CV_DAEMON_TURN_H
#define CV_DAEMON_TURN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

struct cv_turn_ops {
  /* While no batch is being stored: whatever else needs the disk. May fail the turn. NULL: nothing does. */
  void (*between)(void *data);
  /* Something waits to be stored or said; and of what makes a batch large, how much. `gathered` NULL: nothing does. */
  bool (*is_pending)(void *data);
  size_t (*gathered)(void *data);
  /* After a flush: what is pending is the rest of what one peer has asked for, and others come first. NULL: never. */
  bool (*has_rest)(void *data);
  /* Closes the batch; events belong to the next one now. *ret_store: it is not empty. An error: no memory. */
  enum cv_err (*flush)(void *data, bool *ret_store);
  /* Stores the batch before it returns. */
  enum cv_err (*commit)(void *data, struct cv_why *why);
  /* Stores it elsewhere; cv_turn_committed() follows, never from inside this call. NULL: always here. */
  void (*hand_over)(void *data);
  /* The loop can wait for a small commit. */
  bool (*is_quick)(void *data);
  /* The batch is stored, or there was nothing to store: what it caused is said. */
  void (*say)(void *data);
  /* cv_turn_paced() follows, after a while. NULL: no batch waits for more. */
  void (*pace)(void *data);
  /* Once: the daemon tells the operator and stops. */
  void (*fail)(void *data, const char *what, const struct cv_why *why);
};

struct cv_turn {
  const struct cv_turn_ops *ops;
  void *data;
  size_t crowd; /* gathered, from which on nobody waits for a batch */
  size_t full;  /* and from which on a batch does not wait for more; not below `crowd` */
  /* private */
  bool busy, paced, failed;
};

/* Something came in, or time has passed: stores and says what can be. Not from inside an op, nor are the next two. */
void cv_turn_over(struct cv_turn *turn);
/* What was handed over is stored, or is not; goes on. */
void cv_turn_committed(struct cv_turn *turn, enum cv_err err, const struct cv_why *why);
/* The while is over; goes on. */
void cv_turn_paced(struct cv_turn *turn);
/* Something else has ended the daemon. */
void cv_turn_fail(struct cv_turn *turn, const char *what, const struct cv_why *why);

/* A batch is being stored elsewhere. */
static inline bool cv_turn_is_busy(const struct cv_turn *turn) {
  return turn->busy;
}
static inline bool cv_turn_has_failed(const struct cv_turn *turn) {
  return turn->failed;
}

#endif
