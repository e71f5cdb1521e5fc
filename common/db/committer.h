/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit that clocks itself: one commit at a time runs on a thread of its own while the loop gathers the next
 * batch. The daemon's rule is then simple: nothing leaves before the commit that holds its cause.
 */
#ifndef CV_DB_COMMITTER_H
#define CV_DB_COMMITTER_H

#include <stdbool.h>
#include <uv.h>

#include "common/base/err.h"

struct cv_committer {
  uv_loop_t *loop;
  /* Runs on the storage thread; touches only what the loop leaves alone until `done`. */
  enum cv_err (*commit)(void *data, struct cv_why *why);
  /* Runs on the loop when the commit has returned. */
  void (*done)(void *data, enum cv_err err, const struct cv_why *why);
  void *data;
  /* private */
  uv_work_t work;
  bool busy;
  enum cv_err err;
  struct cv_why why;
};

/* Hands a batch over; must not be busy. The caller has set loop, commit, done and data. */
void cv_committer_run(struct cv_committer *committer);
static inline bool cv_committer_is_busy(const struct cv_committer *committer) {
  return committer->busy;
}

#endif
