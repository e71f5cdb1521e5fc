/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/outlook_change.h"

#include <stdio.h>

#include "common/base/grid.h"

static const char *const keys[] = {
    [CV_CHANGE_ALPHA] = "alpha", [CV_CHANGE_EPSILON] = "epsilon", [CV_CHANGE_ROUND] = "tokens_per_round"};

/* The parameters that hold the setting; NULL: a field of the spec does. */
static struct cv_params *params_of(struct cv_spec *spec, enum cv_change_key setting) {
  if (setting == CV_CHANGE_LIMIT || (setting == CV_CHANGE_EPSILON && cv_spec_has_noise(spec))) {
    return NULL;
  }
  return setting == CV_CHANGE_EPSILON ? &spec->privatizer.params : &spec->policy.params;
}

double cv_change_value(const struct cv_spec *spec, enum cv_change_key setting) {
  struct cv_spec copy = *spec; /* its arrays are borrowed */
  const struct cv_params *params = params_of(&copy, setting);
  if (params == NULL) {
    return setting == CV_CHANGE_LIMIT ? (double)spec->tokens : (double)spec->epsilon_micro / (double)CV_MICRO;
  }
  const struct cv_param *param = cv_params_find(params, keys[setting]);
  return param == NULL || param->is_text ? 0 : param->number;
}

enum cv_err cv_change_make(const struct cv_prepared *of, struct cv_change change, struct cv_prepared *ret) {
  struct cv_prepared other = *of;
  struct cv_spec *spec = &other.file.spec;
  struct cv_params *params = params_of(spec, change.setting);
  const struct cv_param *bad;
  if (params != NULL) {
    CV_TRY(cv_params_set_number(params, keys[change.setting], change.value));
  } else if (change.setting == CV_CHANGE_LIMIT) {
    spec->tokens = (uint64_t)change.value;
  } else {
    spec->epsilon_micro = (uint64_t)(change.value * (double)CV_MICRO + .5);
  }
  CV_TRY(cv_policy_check(&spec->policy, &bad, NULL));
  CV_TRY(cv_spec_check(spec, NULL));
  CV_TRY(cv_policy_fits_told(spec, NULL));
  *ret = other;
  return CV_OK;
}

void cv_change_text(struct cv_change change, char *to, size_t size) {
  (void)snprintf(to, size, "%s %.6g", keys[change.setting], change.value);
}
