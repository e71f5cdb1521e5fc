/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DP-UCB-Bound (Tossou and Dimitrakakis, "Algorithms for Differentially Private Multi-Armed Bandits", 2016), with costs
 * charged as in Zhao et al. (2020, section 5.1): it pulls the affordable arm with the highest index, whatever its cost.
 * First it pulls every arm once; then, with t the pulls so far and L = 4 sqrt 8 ln t (log2 z + 1)/(delta z),
 *
 * Parameters:
 *   index  printed    r/z + L, as in Zhao et al.
 *          published  r/z + sqrt(2 ln t/z) + L, as in Tossou and Dimitrakakis; the default
 *   noise  printed, sound: the meaning of delta, see dpu.c
 *
 * L = 0 for exact releases. With the noise of two brokers L z is the quantile at t^-4 of the noise that the arm's last
 * release has: the probability that the published L allows. A step costs O(N).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/recruits.h"

static const char *const index_words[] = {"printed", "published", NULL};
static const char *const noise_words[] = {"printed", "sound", NULL};
static const struct cv_param_rule rules[] = {
    {.key = "index",
     .choices = index_words,
     .fallback_text = "published",
     .help =
         "published: with the term sqrt(2 ln t/z) of Tossou and Dimitrakakis; printed: without it, as in Zhao et al."},
    {.key = "noise",
     .choices = noise_words,
     .fallback_text = "sound",
     .help = "what delta of the paper is. sound: the campaign's epsilon; printed: that times the workers"},
};

struct bound {
  struct cv_recruits recruits;
  bool published;
};

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct bound *self = calloc(1, sizeof(*self));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  enum cv_err err = cv_recruits_init(&self->recruits, &cv_policy_dp_ucb_bound, spec, seed);
  if (err != CV_OK) {
    free(self);
    return err;
  }
  const struct cv_params *params = &spec->policy.params;
  self->published = strcmp(cv_params_text(params, "index"), "published") == 0;
  self->recruits.delta = cv_recruits_delta(&self->recruits, strcmp(cv_params_text(params, "noise"), "printed") == 0);
  *ret = &self->recruits.policy;
  return CV_OK;
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  const struct bound *self = (const struct bound *)policy;
  struct cv_recruits *recruits = (struct cv_recruits *)policy;
  (void)plan;
  CV_TRY(cv_recruits_step(recruits, step));
  if (step->done || cv_recruits_want_first(recruits, step)) {
    return CV_OK;
  }
  double log_t = log((double)recruits->pulls);
  double factor = 4 * sqrt(8) * log_t / recruits->delta;
  for (uint32_t i = 0; i < recruits->arms; i++) {
    const struct cv_recruit *arm = &recruits->arm[i];
    double z = (double)arm->pulls;
    double noise = cv_recruits_noise(recruits, i, factor * (log2(z) + 1), 4 * log_t);
    double width = (self->published ? sqrt(2 * log_t / z) : 0) + noise / z;
    recruits->density[i] = arm->pulls == 0 ? (double)NAN : arm->mean + width / arm->slope;
  }
  cv_recruits_want(recruits, step, cv_recruits_best(recruits, recruits->density), 1);
  return CV_OK;
}

const struct cv_policy_class cv_policy_dp_ucb_bound = {
    .name = "dp-ucb-bound",
    .about = "hires by upper confidence bounds on noisy means",
    .kind = CV_POLICY_RECRUITMENT,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .fits = cv_recruits_fits_index,
    .create = create,
    .reads_noise = true,
    .expect = cv_recruits_expect,
    .destroy = cv_recruits_destroy,
    .apply = cv_recruits_apply,
    .step = make_step,
    .standing = cv_recruits_standing,
    .tells_noise = true,
    .save = cv_recruits_save,
    .load = cv_recruits_load_all,
};
