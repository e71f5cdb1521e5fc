/* SPDX-License-Identifier: Apache-2.0 */
/* The adversaries of the rows of common/config/rewards.h. */
#ifndef CV_QUALITY_ADVERSARIES_H
#define CV_QUALITY_ADVERSARIES_H

#include "common/base/rng.h"
#include "common/config/rewards.h"
#include "worker/quality/adversary.h"

/* cv_adversary_deterministic, ... */
#define CV_ADVERSARY_DECLARED(file, ...) extern const struct cv_adversary_class cv_adversary_##file;
CV_ADVERSARIES(CV_ADVERSARY_DECLARED)
#undef CV_ADVERSARY_DECLARED

/* The gain of `fully-oblivious`, which `oblivious` shares. */
double cv_adversary_drawn(const struct cv_adversary *self, uint32_t arm, uint64_t t);

/* The random path of an arm; each round uses one branch of it. */
static inline uint64_t cv_adversary_path(const struct cv_adversary *self, uint64_t arm) {
  return cv_rng_branch(cv_rng_branch(cv_rng_root(self->seed), 0, CV_RNG_SCORE), 1, arm);
}

#endif
