/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an experiment: its pieces in threads, each stored on disk when it completes. The result is a dataset. */
#ifndef CV_LAB_WORK_H
#define CV_LAB_WORK_H

#include <stdio.h>

#include "lab/result/dataset.h"
#include "lab/run/shard.h"

struct cv_lab_work {
  const struct cv_lab_experiment *experiment; /* checked (cv_lab_experiment_check) */
  uint64_t replicates;                        /* 0: the experiment's own number */
  uint64_t seed;
  unsigned jobs; /* 0: one per processor */
  bool token_level;
  struct cv_lab_shard shard; /* the part to run; {1, 1}: all */
  const char *file;          /* results on disk (store.h); NULL: none */
  bool resume;               /* do not run pieces again that the file has */
  FILE *progress;            /* see cv_lab_pool(); NULL: none */
};

/*
 * Sets *ret to all values computed now or read from the file, up to the requested number of replicates; the caller
 * frees it. The values do not depend on the number of jobs, shards and interruptions. On an error there is one line,
 * and the file has the pieces completed so far.
 */
CV_MUST_USE enum cv_err cv_lab_work_run(const struct cv_lab_work *work, struct cv_lab_dataset *ret, struct cv_why *why);

#endif
