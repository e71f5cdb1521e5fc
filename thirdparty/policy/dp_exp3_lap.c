/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/adversarial.h"
#include "thirdparty/policy/classes.h"

static const struct cv_param_rule rules[] = {CV_GAMMA_RULE, CV_PULLS_RULE};

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  return cv_arms_fit(spec, 1U << CV_LOCAL_LAPLACE, why);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  return cv_adversarial_create(&cv_policy_dp_exp3_lap, spec, seed, 1, ret);
}

const struct cv_policy_class cv_policy_dp_exp3_lap = {
    .name = "dp-exp3-lap",
    .about = "which arm to pull, for arbitrary gains behind Laplace noise",
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .fits = fits,
    .create = create,
    CV_ADVERSARIAL_CLASS,
};
