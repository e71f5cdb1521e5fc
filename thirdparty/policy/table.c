/* SPDX-License-Identifier: Apache-2.0 */
/* Every policy there is: a new one is a file and a line here. */
#include <string.h>

#include "thirdparty/policy/aae.h"
#include "thirdparty/policy/alpha_sample.h"
#include "thirdparty/policy/baselines.h"
#include "thirdparty/policy/corrupt.h"
#include "thirdparty/policy/dp_se.h"
#include "thirdparty/policy/dp_ucb_bound.h"
#include "thirdparty/policy/dpf.h"
#include "thirdparty/policy/dpu.h"
#include "thirdparty/policy/eps_greedy.h"
#include "thirdparty/policy/exp3.h"
#include "thirdparty/policy/gap.h"
#include "thirdparty/policy/policy.h"
#include "thirdparty/policy/ppar.h"

static const struct cv_policy_class *const table[] = {
    &cv_policy_ppar,     &cv_policy_dpf,      &cv_policy_dpu,          &cv_policy_eps_greedy,  &cv_policy_dp_ucb_bound,
    &cv_policy_cheapest, &cv_policy_uniform,  &cv_policy_opt,          &cv_policy_gap,         &cv_policy_gapu,
    &cv_policy_aae,      &cv_policy_dp_se,    &cv_policy_alpha_sample, &cv_policy_klucb_cf,    &cv_policy_ucb_cf,
    &cv_policy_ts_cf,    &cv_policy_kl_local, &cv_policy_exp3,         &cv_policy_dp_exp3_lap, &cv_policy_exp3_tau,
};

const struct cv_policy_class *cv_policy_at(size_t index) {
  return index < CV_COUNT(table) ? table[index] : NULL;
}

const struct cv_policy_class *cv_policy_find(const char *name) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    if (strcmp(table[i]->name, name) == 0) {
      return table[i];
    }
  }
  return NULL;
}
