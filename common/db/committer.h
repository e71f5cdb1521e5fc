/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit: one commit at a time runs on a storage thread while the loop gathers the next batch. The daemon sends
 * nothing before the commit that contains its cause.
 *
 * For a small batch, handing over to the thread and back takes longer than the commit itself. While the disk is fast
 * the loop may therefore commit such a batch itself: cv_committer_run_here().
 */
#ifndef CV_DB_COMMITTER_H
#define CV_DB_COMMITTER_H

#include <stdbool.h>
#include <uv.h>

#include "common/base/err.h"
#include "common/base/histogram.h"

struct cv_committer {
  uv_loop_t *loop;
  /* Runs on the storage thread, or in cv_committer_run_here(); may use only data that the loop does not change
   * meanwhile. */
  enum cv_err (*commit)(void *data, struct cv_why *why);
  /* Runs on the loop after the commit has returned. */
  void (*done)(void *data, enum cv_err err, const struct cv_why *why);
  void *data;
  /* Of every commit, on either thread; written on the loop. The caller has set the bounds, in seconds. */
  struct cv_histogram took_s;
  /* private */
  uv_work_t work;
  bool busy;
  uint64_t began_ns, took_ns; /* of the commit that runs, or ran last */
  unsigned quick;             /* consecutive fast commits */
  enum cv_err err;
  struct cv_why why;
};

/* Starts a commit on the storage thread. No commit may be running. The caller has set loop, commit, done and data. */
void cv_committer_run(struct cv_committer *committer);
static inline bool cv_committer_is_busy(const struct cv_committer *committer) {
  return committer->busy;
}
/* For how long the commit on the storage thread has been running; 0: none runs. */
uint64_t cv_committer_busy_ms(const struct cv_committer *committer);

/* True if each of the last commits took less than 10 ms, on either thread: then the loop may commit by itself. */
bool cv_committer_is_quick(const struct cv_committer *committer);
/* Commits on the loop and returns the commit's result; does not call `done`. No commit may be running. */
CV_MUST_USE enum cv_err cv_committer_run_here(struct cv_committer *committer, struct cv_why *why);

#endif
