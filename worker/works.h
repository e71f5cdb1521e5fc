/* SPDX-License-Identifier: Apache-2.0 */
/* The campaigns that a worker has scores for: one campaign file, or every *.yaml in a folder. */
#ifndef CV_WORKER_WORKS_H
#define CV_WORKER_WORKS_H

#include "common/base/rng.h"
#include "worker/core.h"

/* Seed not set: use each file's own seed, or a random one. */
#define CV_WORKS_SEED_NONE UINT64_MAX

struct cv_works {
  bool are_asked;           /* programs or people give the scores */
  struct cv_served *served; /* campaign files and scores that `work` points to; owned */
  struct cv_work *work;
  size_t works;
  /* The persons of a data file with a worker column; its campaign is then the only one. NULL: no worker column. */
  const struct cv_persons *persons;
  const char *file;
  uint64_t first_worker, seed;
};

/*
 * Reads the file, or the folder's files in order of name, and their data. `are_asked`: programs or people give the
 * scores, so that items need no means. CV_ERR_INVALID with one line in `why` for an
 * invalid file, a folder with no or more than 64 files, two campaigns with one name, or another campaign next to one
 * with a worker column (the store and the stock hold the rows of one campaign).
 */
CV_MUST_USE enum cv_err cv_works_load(const char *path, uint64_t seed, bool are_asked, struct cv_rng *rng,
                                      struct cv_works *ret, struct cv_why *why);
/* Safe on a zeroed struct. */
void cv_works_fini(struct cv_works *works);

#endif
