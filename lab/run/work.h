/* SPDX-License-Identifier: Apache-2.0 */
/* Running an experiment: its pieces over threads, each on disk as it is done, and what comes of it as a dataset. */
#ifndef CV_LAB_WORK_H
#define CV_LAB_WORK_H

#include <stdio.h>

#include "lab/result/dataset.h"
#include "lab/run/shard.h"

struct cv_lab_work {
  const struct cv_lab_experiment *experiment; /* checked (cv_lab_experiment_check) */
  uint64_t replicates;                        /* 0: the experiment's own number */
  uint64_t seed;
  unsigned jobs; /* 0: one a processor */
  bool token_level;
  struct cv_lab_shard shard; /* what of it is run; {1, 1}: all */
  const char *file;          /* results on disk (store.h); NULL: none */
  bool resume;               /* pieces that the file has are not run again */
  FILE *progress;            /* see cv_lab_pool(); NULL: none */
};

/*
 * *ret has every number that was found now or is in the file, of as many replicates as were asked for. The numbers are
 * the same for any number of jobs, of shards and of interruptions. One line about what went wrong; what was done until
 * then is in the file.
 */
CV_MUST_USE enum cv_err cv_lab_work_run(const struct cv_lab_work *work, struct cv_lab_dataset *ret, struct cv_why *why);

#endif
