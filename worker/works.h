/* SPDX-License-Identifier: Apache-2.0 */
/* The campaigns that a worker has scores for: those of one file, or of every *.yaml in a folder. */
#ifndef CV_WORKER_WORKS_H
#define CV_WORKER_WORKS_H

#include "common/base/rng.h"
#include "worker/core.h"

/* A seed that was not given: then each file's own, or one that is drawn. */
#define CV_WORKS_SEED_NONE UINT64_MAX

struct cv_works {
  struct cv_served *served; /* what the works point to */
  struct cv_work *work;
  size_t works;
  /* Of a data file that tells persons apart; then its campaign is the only one. NULL: none does. */
  const struct cv_persons *persons;
  const char *file;
  uint64_t first_worker, seed;
};

/*
 * Reads the file, or the folder's in the order of their names, and the data that they name. One line in `why`: a file
 * that is no good, a folder without one or with more than 64, two campaigns of one name, persons beside another
 * campaign (whose rows are remembered, and who come with wishes, is of one).
 */
CV_MUST_USE enum cv_err cv_works_load(const char *path, uint64_t seed, struct cv_rng *rng, struct cv_works *ret,
                                      struct cv_why *why);
/* Harmless on one that is all zero. */
void cv_works_fini(struct cv_works *works);

#endif
