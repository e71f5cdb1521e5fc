/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/beta.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/corrupt.h"

static double index_of(const struct cv_arms *arms, uint32_t arm, struct cv_rng *rng) {
  double n = (double)arms->arm[arm].tokens, ones = n * cv_arms_mean(arms, arm);
  return cv_draw_beta(rng, 1 + ones, 1 + n - ones);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  static const struct cv_corrupt_law law = {.draw = index_of};
  return cv_corrupt_create(&cv_policy_ts_cf, &law, spec, seed, ret);
}

const struct cv_policy_class cv_policy_ts_cf = {.name = "ts-cf",
                                                .about = "which arm to pull, behind randomized response (TS-CF)",
                                                .create = create,
                                                CV_CORRUPT_CLASS};
