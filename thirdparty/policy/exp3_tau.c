/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/adversarial.h"
#include "thirdparty/policy/classes.h"

static const struct cv_param_rule rules[] = {
    CV_GAMMA_RULE,
    CV_PULLS_RULE,
    {.key = "tau",
     .low = 0,
     .high = 1 << 24,
     .whole = true,
     .fallback = 0,
     .help = "how many pulls a choice holds; 0: tuned to the horizon"},
};

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  uint32_t tau = (uint32_t)cv_params_number(&spec->policy.params, "tau");
  return cv_adversarial_create(&cv_policy_exp3_tau, spec, seed, tau, ret);
}

const struct cv_policy_class cv_policy_exp3_tau = {
    .name = "exp3-tau",
    .about = "likewise, with each choice for several pulls",
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .has_floor = true,
    .fits = cv_adversarial_fits_trusted,
    .create = create,
    CV_ADVERSARIAL_CLASS,
};
