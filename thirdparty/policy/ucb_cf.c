/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/corrupt.h"

static double index_of(const struct cv_arms *arms, uint32_t i, struct cv_rng *rng) {
  const struct cv_arms_sum *arm = &arms->arm[i];
  double radius = sqrt(log((double)arms->pulls) / (2 * (double)arm->tokens));
  return cv_arms_mean(arms, i) + (arm->feedback.slope > 0 ? radius : -radius);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  static const struct cv_corrupt_law law = {.draw = index_of};
  return cv_corrupt_create(&cv_policy_ucb_cf, &law, spec, seed, ret);
}

const struct cv_policy_class cv_policy_ucb_cf = {.name = "ucb-cf",
                                                 .about = "which arm to pull, behind randomized response (UCB-CF)",
                                                 .create = create,
                                                 CV_CORRUPT_CLASS};
