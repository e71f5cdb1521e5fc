/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Baselines for recruitment policies. No parameters.
 *
 *   cheapest  spends the budget on the cheapest arm, in one plan
 *   uniform   pulls a random affordable arm, one pull per plan; from the stream of the plan
 *   opt       uses the true means: the densest arm (mean per cost) as often as the budget permits, then the next (OPT
 *             of Zhao et al. 2020, section 5.1). Only for a simulation in one process, since a third-party must not get
 *             the true means. Without them it equals `cheapest`
 */
#include <math.h>

#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/recruits.h"

/* Spends the budget greedily by density. */
static enum cv_err step_by_density(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  struct cv_recruits *self = (struct cv_recruits *)policy;
  (void)plan;
  CV_TRY(cv_recruits_step(self, step));
  if (!step->done) {
    cv_recruits_fill(self, self->density, self->left_micro);
    cv_recruits_want_picks(self, step);
  }
  return CV_OK;
}

static enum cv_err create_cheapest(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  /* All densities are 0, so the greedy choice is the first arm of by_cost. */
  return cv_recruits_create(&cv_policy_cheapest, spec, seed, ret);
}

static enum cv_err create_opt(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  return cv_recruits_create(&cv_policy_opt, spec, seed, ret);
}

static void tell_opt(struct cv_policy *policy, const double *mean) {
  struct cv_recruits *self = (struct cv_recruits *)policy;
  for (uint32_t i = 0; i < self->arms; i++) {
    self->density[i] = mean[i] / self->arm[i].cost;
  }
}

static void save_opt(const struct cv_policy *policy, struct cv_buf *out) {
  const struct cv_recruits *self = (const struct cv_recruits *)policy;
  cv_recruits_save(policy, out);
  for (uint32_t i = 0; i < self->arms; i++) {
    cv_buf_put_f64(out, self->density[i]);
  }
}

static enum cv_err load_opt(struct cv_policy *policy, struct cv_reader *in) {
  struct cv_recruits *self = (struct cv_recruits *)policy;
  CV_TRY(cv_recruits_load(policy, in));
  for (uint32_t i = 0; i < self->arms; i++) {
    self->density[i] = cv_read_f64(in);
    if (!isfinite(self->density[i])) {
      return CV_ERR_DAMAGED;
    }
  }
  return cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}

static enum cv_err create_uniform(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  return cv_recruits_create(&cv_policy_uniform, spec, seed, ret);
}

static enum cv_err step_uniform(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  struct cv_recruits *self = (struct cv_recruits *)policy;
  CV_TRY(cv_recruits_step(self, step));
  if (!step->done) {
    struct cv_rng_seeded stream;
    cv_recruits_stream(self, plan, &stream);
    cv_recruits_want(self, step, cv_recruits_any(self, &stream.rng), 1);
  }
  return CV_OK;
}

const struct cv_policy_class cv_policy_cheapest = {
    .name = "cheapest",
    .about = "hires the cheapest workers",
    .kind = CV_POLICY_RECRUITMENT,
    .one_plan = true,
    .fits = cv_recruits_fits,
    .create = create_cheapest,
    .reads_noise = true,
    .expect = cv_recruits_expect,
    .destroy = cv_recruits_destroy,
    .apply = cv_recruits_apply,
    .step = step_by_density,
    .standing = cv_recruits_standing,
    .tells_noise = true,
    .save = cv_recruits_save,
    .load = cv_recruits_load_all,
};

const struct cv_policy_class cv_policy_opt = {
    .name = "opt",
    .about = "hires with the true qualities known, for comparison",
    .kind = CV_POLICY_RECRUITMENT,
    .one_plan = true,
    .fits = cv_recruits_fits,
    .create = create_opt,
    .reads_noise = true,
    .expect = cv_recruits_expect,
    .tell = tell_opt,
    .destroy = cv_recruits_destroy,
    .apply = cv_recruits_apply,
    .step = step_by_density,
    .standing = cv_recruits_standing,
    .tells_noise = true,
    .save = save_opt,
    .load = load_opt,
};

const struct cv_policy_class cv_policy_uniform = {
    .name = "uniform",
    .about = "hires all workers alike",
    .kind = CV_POLICY_RECRUITMENT,
    .fits = cv_recruits_fits,
    .create = create_uniform,
    .reads_noise = true,
    .expect = cv_recruits_expect,
    .destroy = cv_recruits_destroy,
    .apply = cv_recruits_apply,
    .step = step_uniform,
    .standing = cv_recruits_standing,
    .tells_noise = true,
    .save = cv_recruits_save,
    .load = cv_recruits_load_all,
};
