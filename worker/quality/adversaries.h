/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the table of adversaries, one a file. */
#ifndef CV_QUALITY_ADVERSARIES_H
#define CV_QUALITY_ADVERSARIES_H

#include "common/base/rng.h"
#include "worker/quality/adversary.h"

extern const struct cv_adversary_class cv_adversary_deterministic;
extern const struct cv_adversary_class cv_adversary_stochastic;
extern const struct cv_adversary_class cv_adversary_fully_oblivious;
extern const struct cv_adversary_class cv_adversary_oblivious;
extern const struct cv_adversary_class cv_adversary_switching;

/* What `fully-oblivious` gives. */
double cv_adversary_drawn(const struct cv_adversary *self, uint32_t arm, uint64_t t);

/* The streams of an arm, of which each round has a branch. */
static inline uint64_t cv_adversary_path(const struct cv_adversary *self, uint64_t arm) {
  return cv_rng_branch(cv_rng_branch(cv_rng_root(self->seed), 0, CV_RNG_SCORE), 1, arm);
}

#endif
