/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KL indices of bandit arms, computed only if needed. The index of arm a is g_a^-1(q), q the furthest with
 * N_a d(mean token, q) <= f (corrupt.h), f a function of the time. It is an increasing, concave function of f. So the
 * cached index of an arm that was not pulled since is a lower bound, and the tangent at the cached f is an upper bound:
 * an arm whose upper bound is below another's index needs no computation. With f = ln t + ... tangents stay tight for
 * very long.
 *
 * Each computed index depends only on the arm's sums and f; the cache changes neither an index nor the best arm.
 */
#ifndef CV_THIRDPARTY_KL_INDEX_H
#define CV_THIRDPARTY_KL_INDEX_H

#include "thirdparty/policy/arms.h"

/* f at the present number of pulls, >= 0. */
typedef double cv_kl_bonus_fn(const struct cv_arms *arms);

/* The index of a pulled arm at this f >= 0. */
double cv_kl_index_at(const struct cv_arms *arms, uint32_t arm, double f);

/* The last value of an arm and what it was computed from. */
struct cv_kl_known {
  uint64_t tokens; /* 0: no value yet */
  int64_t sum;
  double f, index;
  double rate; /* d index/d f */
};

struct cv_kl_index {
  cv_kl_bonus_fn *bonus;
  struct cv_kl_known *known;
};

/* Sets up an empty cache. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_kl_index_init(cv_kl_bonus_fn *bonus, uint32_t arms, struct cv_kl_index *ret);
void cv_kl_index_fini(struct cv_kl_index *self);

/* The index of a pulled arm. */
double cv_kl_index_of(struct cv_kl_index *self, const struct cv_arms *arms, uint32_t arm);
/* Sets *ret_arm to an arm with the highest index; false if several arms tie. All arms must have been pulled. */
bool cv_kl_index_best(struct cv_kl_index *self, const struct cv_arms *arms, uint32_t *ret_arm);

#endif
