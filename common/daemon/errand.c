/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/errand.h"

static void work(uv_work_t *request) {
  struct cv_errand *errand = request->data;
  errand->err = errand->work(errand->data, &errand->why);
}

static void after(uv_work_t *request, int status) {
  struct cv_errand *errand = request->data;
  CV_REQUIRE(status == 0);
  errand->done(errand->data, errand->err, &errand->why);
  cv_turn_give_back(errand->turn);
}

bool cv_errand_run(struct cv_errand *errand, enum cv_err (*work_fn)(void *data, struct cv_why *why),
                   void (*done)(void *data, enum cv_err err, const struct cv_why *why), void *data) {
  if (!cv_turn_take(errand->turn)) {
    return false;
  }
  errand->request.data = errand;
  errand->work = work_fn;
  errand->done = done;
  errand->data = data;
  int rc = uv_queue_work(errand->loop, &errand->request, work, after);
  CV_REQUIRE(rc == 0);
  return true;
}
