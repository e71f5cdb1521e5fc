/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/corrupt.h"
#include "thirdparty/policy/posterior.h"

static double index_of(const struct cv_arms *arms, uint32_t arm) {
  double n = (double)arms->arm[arm].tokens, ones = n * cv_arms_mean(arms, arm);
  double tail = fmin(0.5, arms->arms * pow(n, 0.6) / (double)arms->horizon);
  return cv_posterior_upper(ones, n - ones, arms->arm[arm].feedback, tail);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  static const struct cv_corrupt_law law = {.index = index_of};
  return cv_corrupt_create(&cv_policy_posterior_quantile, &law, spec, seed, ret);
}

const struct cv_policy_class cv_policy_posterior_quantile = {
    .name = "posterior-quantile",
    .about = "which arm to pull, by a quantile of each mean's posterior",
    .create = create,
    CV_CORRUPT_CLASS};
