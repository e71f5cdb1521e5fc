/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/corrupt.h"

static double index_of(const struct cv_arms *arms, uint32_t arm) {
  double n = (double)arms->arm[arm].tokens, f = fmax(0, log((double)arms->horizon / (arms->arms * sqrt(n))));
  return fmin(cv_kl_index_at(arms, arm, f), 1);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  static const struct cv_corrupt_law law = {.index = index_of};
  return cv_corrupt_create(&cv_policy_kl_local, &law, spec, seed, ret);
}

const struct cv_policy_class cv_policy_kl_local = {
    .name = "kl-local",
    .about = "which arm to pull, behind randomized response, with less exploration",
    .create = create,
    CV_CORRUPT_CLASS};
