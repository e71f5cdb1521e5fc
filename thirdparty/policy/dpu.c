/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/dpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "thirdparty/policy/recruits.h"

static const char *const noise_words[] = {"printed", "sound", NULL};
static const struct cv_param_rule rules[] = {
    {.key = "noise", .choices = noise_words, .fallback_text = "sound"},
    {.key = "pulls", .low = 1, .high = 65535, .whole = true, .fallback = 1},
};

struct dpu {
  struct cv_recruits recruits;
  uint64_t pulls; /* of a plan */
};

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct dpu *self = calloc(1, sizeof(*self));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  enum cv_err err = cv_recruits_init(&self->recruits, &cv_policy_dpu, spec, seed);
  if (err != CV_OK) {
    free(self);
    return err;
  }
  const struct cv_params *params = &spec->policy.params;
  self->recruits.delta = cv_recruits_delta(&self->recruits, strcmp(cv_params_text(params, "noise"), "printed") == 0);
  self->pulls = (uint64_t)cv_params_number(params, "pulls");
  *ret = &self->recruits.policy;
  return CV_OK;
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  struct cv_recruits *self = (struct cv_recruits *)policy;
  CV_TRY(cv_recruits_step(self, step));
  if (step->done || cv_recruits_want_first(self, step)) {
    return CV_OK;
  }
  double t = (double)self->pulls;
  double v = self->epsilon_micro == 0 ? 0 : sqrt(8) / self->delta * log(4 * pow(t, 4)) * (log(t) + 1);
  double spread = 2 * log(t);
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct cv_recruit *arm = &self->arm[i];
    double z = (double)arm->pulls;
    double width = (sqrt(spread / z) + v / z) / arm->slope;
    self->density[i] = arm->pulls == 0 ? (double)NAN : (arm->mean + width) / arm->cost;
  }
  cv_recruits_fill(self, self->density, self->left_micro);
  cv_recruits_want_drawn(self, plan, ((const struct dpu *)policy)->pulls, step);
  return CV_OK;
}

const struct cv_policy_class cv_policy_dpu = {
    .name = "dpu",
    .kind = CV_POLICY_RECRUITMENT,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .fits = cv_recruits_fits_index,
    .create = create,
    .destroy = cv_recruits_destroy,
    .apply = cv_recruits_apply,
    .step = make_step,
    .standing = cv_recruits_standing,
    .save = cv_recruits_save,
    .load = cv_recruits_load_all,
};
