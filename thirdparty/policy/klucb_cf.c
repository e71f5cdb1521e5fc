/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/corrupt.h"

static double bonus(const struct cv_arms *arms) {
  double t = log((double)arms->pulls);
  /* ln ln t is negative for t < e: clip f at 0. */
  return t <= 0 ? 0 : fmax(0, t + 3 * log(t));
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  static const struct cv_corrupt_law law = {.bonus = bonus};
  return cv_corrupt_create(&cv_policy_klucb_cf, &law, spec, seed, ret);
}

const struct cv_policy_class cv_policy_klucb_cf = {.name = "klucb-cf",
                                                   .about = "which arm to pull, behind randomized response (KL-UCB-CF)",
                                                   .create = create,
                                                   CV_CORRUPT_CLASS};
