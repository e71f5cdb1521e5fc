/* SPDX-License-Identifier: Apache-2.0 */
/* The campaigns that a worker has scores for: one campaign file, or every *.yaml in a folder. */
#ifndef CV_WORKER_WORKS_H
#define CV_WORKER_WORKS_H

#include "common/base/rng.h"
#include "worker/core.h"

/* Seed not set: use each file's own seed, or a random one. */
#define CV_WORKS_SEED_NONE UINT64_MAX

enum { CV_WORKS_PARTS_MAX = 1000 };

/* How works are to be read. */
struct cv_works_ask {
  uint64_t seed;        /* CV_WORKS_SEED_NONE: each file's own, or a random one */
  bool are_asked;       /* programs or people give the scores, so that items need no means */
  uint32_t part, parts; /* of the rows of data files, from 1; 0: all of them */
};

struct cv_works {
  struct cv_served *served; /* campaign files and scores that `work` points to; owned */
  struct cv_work *work;
  size_t works;
  /* The persons of a data file with a worker column; its campaign is then the only one. NULL: no worker column. */
  const struct cv_persons *persons;
  const char *file;
  uint64_t first_worker, seed;
};

/* Reads a part as K of N, with K from 1 to N and N up to CV_WORKS_PARTS_MAX; false if it is none. */
bool cv_works_read_part(const char *text, struct cv_works_ask *ask);
/*
 * Reads the file, or the folder's files in order of name, and their data. CV_ERR_INVALID with one line in `why` for an
 * invalid file, a folder with no or more than 64 files, two campaigns with one name, another campaign next to one with
 * a worker column (the stock holds the rows of one campaign), or a part of what has none.
 */
CV_MUST_USE enum cv_err cv_works_load(const char *path, const struct cv_works_ask *ask, struct cv_rng *rng,
                                      struct cv_works *ret, struct cv_why *why);
/* Gives the rows of data files whose order no seed says the order that follows from the key. */
void cv_works_order(struct cv_works *works, const uint8_t key[CV_COIN_KEY_BYTES]);
/* The first data file whose rows have to be remembered: each is used once, and no seed says their order; or each is
 * randomized once. NULL: there is none. */
const char *cv_works_remembers(const struct cv_works *works, bool are_local);
/* Safe on a zeroed struct. */
void cv_works_fini(struct cv_works *works);

#endif
