/* SPDX-License-Identifier: Apache-2.0 */
/* What a party does on the storage thread besides commits, one thing at a time, while no batch is stored. */
#ifndef CV_DAEMON_ERRAND_H
#define CV_DAEMON_ERRAND_H

#include <uv.h>

#include "common/daemon/turn.h"

struct cv_errand {
  /* set by the caller */
  uv_loop_t *loop;
  struct cv_turn *turn;
  /* private */
  uv_work_t request;
  enum cv_err (*work)(void *data, struct cv_why *why);
  void (*done)(void *data, enum cv_err err, const struct cv_why *why);
  void *data;
  enum cv_err err;
  struct cv_why why;
};

/* Runs `work` on the storage thread, then `done` on the loop. False, and neither is called, if the storage is not free:
 * ask again later. */
bool cv_errand_run(struct cv_errand *errand, enum cv_err (*work)(void *data, struct cv_why *why),
                   void (*done)(void *data, enum cv_err err, const struct cv_why *why), void *data);

#endif
