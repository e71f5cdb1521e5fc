/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit that clocks itself: one commit at a time runs on a thread of its own while the loop gathers the next
 * batch. The daemon's rule is then simple: nothing leaves before the commit that holds its cause.
 *
 * Where somebody waits for a small batch and nobody for the loop, the way to the thread and back is what costs most of
 * it. While the disk is quick such a batch may be stored on the loop itself: cv_committer_run_here().
 */
#ifndef CV_DB_COMMITTER_H
#define CV_DB_COMMITTER_H

#include <stdbool.h>
#include <uv.h>

#include "common/base/err.h"

struct cv_committer {
  uv_loop_t *loop;
  /* Runs on the storage thread, or in cv_committer_run_here(); touches only what the loop leaves alone meanwhile. */
  enum cv_err (*commit)(void *data, struct cv_why *why);
  /* Runs on the loop when the commit has returned. */
  void (*done)(void *data, enum cv_err err, const struct cv_why *why);
  void *data;
  /* private */
  uv_work_t work;
  bool busy;
  unsigned quick; /* commits in a row that took little */
  enum cv_err err;
  struct cv_why why;
};

/* Hands a batch over; must not be busy. The caller has set loop, commit, done and data. */
void cv_committer_run(struct cv_committer *committer);
static inline bool cv_committer_is_busy(const struct cv_committer *committer) {
  return committer->busy;
}

/* Each of the last commits took less than 10 ms, wherever it ran: the loop can wait for the next one. */
bool cv_committer_is_quick(const struct cv_committer *committer);
/* Commits before it returns, with the commit's own result; `done` is not called. Must not be busy. */
CV_MUST_USE enum cv_err cv_committer_run_here(struct cv_committer *committer, struct cv_why *why);

#endif
