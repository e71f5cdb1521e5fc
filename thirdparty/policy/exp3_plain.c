/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/adversarial.h"
#include "thirdparty/policy/classes.h"

static const struct cv_param_rule rules[] = {CV_GAMMA_RULE, CV_PULLS_RULE};

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  return cv_adversarial_create(&cv_policy_exp3, spec, seed, 1, ret);
}

const struct cv_policy_class cv_policy_exp3 = {
    .name = "exp3",
    .about = "which arm to pull, for arbitrary gains",
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .fits = cv_adversarial_fits_trusted,
    .create = create,
    CV_ADVERSARIAL_CLASS,
};
