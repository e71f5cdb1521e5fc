/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that give the scores (--exec): a few children of the spawner (spawner.h), which are asked line by line
 * (exchange.h), each at most `ahead` questions at a time. A program that ends is started again, after a pause that
 * doubles up to half a minute and begins anew with the next good answer. One that answers nonsense, does not read or
 * is silent for too long is killed, since its later lines could be taken for answers to other questions. In each case
 * one line of the log says so, and its questions are passed.
 */
#ifndef CV_WORKER_PROGRAMS_H
#define CV_WORKER_PROGRAMS_H

#include <uv.h>

#include "worker/core.h"
#include "worker/spawner.h"

struct cv_programs;

struct cv_programs_config {
  uv_loop_t *loop;
  const struct cv_spawner *spawner;
  unsigned slots;      /* programs at a time */
  unsigned ahead;      /* questions of a program at a time */
  uint64_t timeout_ms; /* longest silence of a program that has a question */
  /* Called from the loop or from cv_programs_tick(), never from within a function of the asker. */
  void (*answer)(void *data, uint64_t question, int64_t score);
  void (*pass)(void *data, uint64_t question, const char *reason);
  void *data;
};

/* Logs whether programs have power over the process that starts them. `requires`: CV_ERR_STATE if they have. */
CV_MUST_USE enum cv_err cv_programs_tell(const struct cv_spawner *spawner, bool requires, struct cv_why *why);

/* CV_ERR_NOMEM or CV_ERR_IO. */
CV_MUST_USE enum cv_err cv_programs_start(const struct cv_programs_config *config, struct cv_programs **ret,
                                          struct cv_why *why);
/* For the pool; borrowed. */
const struct cv_asker *cv_programs_asker(struct cv_programs *programs);
/* Call several times a second. False: the spawner is gone, and no program can be started any more. */
bool cv_programs_tick(struct cv_programs *programs, uint64_t now_ms);
/* The number of programs that run now. */
unsigned cv_programs_running(const struct cv_programs *programs);
/* Closes what it has on the loop, which frees the rest; no callback follows. NULL does nothing. */
void cv_programs_stop(struct cv_programs *programs);

#endif
