/* SPDX-License-Identifier: Apache-2.0 */
#include "common/db/committer.h"

/* Ten milliseconds on the loop are not noticed; slower disks would hold up every peer. */
enum { QUICK_NS = 10 * 1000 * 1000, QUICK_COMMITS = 16 };

static enum cv_err timed(struct cv_committer *committer, struct cv_why *why) {
  uint64_t began_ns = uv_hrtime();
  enum cv_err err = committer->commit(committer->data, why);
  committer->took_ns = uv_hrtime() - began_ns;
  return err;
}

/* On the loop: what both threads' commits have in common. */
static void note(struct cv_committer *committer) {
  /* One slow commit is enough to use the thread for the next QUICK_COMMITS. */
  if (committer->took_ns >= QUICK_NS) {
    committer->quick = 0;
  } else if (committer->quick < QUICK_COMMITS) {
    committer->quick++;
  }
  cv_histogram_add(&committer->took_s, (double)committer->took_ns / 1e9);
}

static void work(uv_work_t *work) {
  struct cv_committer *committer = work->data;
  committer->err = timed(committer, &committer->why);
}

static void after(uv_work_t *work, int status) {
  struct cv_committer *committer = work->data;
  CV_REQUIRE(status == 0);
  committer->busy = false;
  note(committer);
  committer->done(committer->data, committer->err, &committer->why);
}

void cv_committer_run(struct cv_committer *committer) {
  CV_REQUIRE(!committer->busy);
  committer->busy = true;
  committer->began_ns = uv_hrtime();
  committer->work.data = committer;
  int rc = uv_queue_work(committer->loop, &committer->work, work, after);
  CV_REQUIRE(rc == 0);
}

uint64_t cv_committer_busy_ms(const struct cv_committer *committer) {
  return committer->busy ? (uv_hrtime() - committer->began_ns) / 1000000 : 0;
}

bool cv_committer_is_quick(const struct cv_committer *committer) {
  return committer->quick == QUICK_COMMITS;
}

enum cv_err cv_committer_run_here(struct cv_committer *committer, struct cv_why *why) {
  /* The store has one user at a time; its database is opened without a mutex. */
  CV_REQUIRE(!committer->busy);
  enum cv_err err = timed(committer, why);
  note(committer);
  return err;
}
