/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "thirdparty/policy/corrupt.h"

static double index_of(const struct cv_arms *arms, uint32_t arm, struct cv_rng *rng) {
  double n = (double)arms->arm[arm].tokens, f = log((double)arms->horizon / (arms->arms * sqrt(n)));
  return cv_corrupt_kl(arms, arm, fmax(0, f));
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  return cv_corrupt_create(&cv_policy_kl_local, index_of, true, spec, seed, ret);
}

const struct cv_policy_class cv_policy_kl_local = {.name = "kl-local", .create = create, CV_CORRUPT_CLASS};
