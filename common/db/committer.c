/* SPDX-License-Identifier: Apache-2.0 */
#include "common/db/committer.h"

static void work(uv_work_t *work) {
  struct cv_committer *committer = work->data;
  committer->err = committer->commit(committer->data, &committer->why);
}

static void after(uv_work_t *work, int status) {
  struct cv_committer *committer = work->data;
  CV_REQUIRE(status == 0);
  committer->busy = false;
  committer->done(committer->data, committer->err, &committer->why);
}

void cv_committer_run(struct cv_committer *committer) {
  CV_REQUIRE(!committer->busy);
  committer->busy = true;
  committer->work.data = committer;
  int rc = uv_queue_work(committer->loop, &committer->work, work, after);
  CV_REQUIRE(rc == 0);
}
