/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "thirdparty/policy/corrupt.h"

static double index_of(const struct cv_arms *arms, uint32_t arm, struct cv_rng *rng) {
  double t = log((double)arms->pulls);
  /* ln ln t is below 0 until t = e; f is made to start at 0. */
  double f = t <= 0 ? 0 : fmax(0, t + 3 * log(t));
  return cv_corrupt_kl(arms, arm, f);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  return cv_corrupt_create(&cv_policy_klucb_cf, index_of, false, spec, seed, ret);
}

const struct cv_policy_class cv_policy_klucb_cf = {.name = "klucb-cf", .create = create, CV_CORRUPT_CLASS};
