/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DPU (Zhao et al. 2020, Algorithm 2): it pulls every arm once (lines 4 to 6); then, with t the pulls so far, the index
 *
 *   I = r/z + sqrt(2 ln t/z) + v/z,  v = (sqrt 8/delta) ln(4 t^4) (ln t + 1)   (Definition 4.1, gamma = t^-4; natural
 *                                                                               logarithms; v = 0 for exact releases)
 *
 * fills the rest of the budget greedily by I/c (line 10), and the next arm is drawn with probability proportional to
 * its count in that filling (line 11). Figure 3 of the paper: costs 2, 4, 5 and B = 200 without noise give densities
 * 1.0412, .5456, .4765 and counts {94, 0, 0} after three pulls. The printed counts after five pulls, {1, 61, 0}, are
 * wrong: they cost 246 with 185 left, and they contradict the printed densities (.7013, .6235, .5388).
 *
 * Parameters:
 *   noise  printed  all N counters share delta: delta = N times the campaign's epsilon, which each arm spends
 *          sound    a slot shows one arm: delta = the campaign's epsilon
 *   pulls  arms drawn per plan, each at most as often as in the greedy filling; default 1, as in the paper. More pulls
 *          make fewer plans, each of which third-party and broker store before any assignment
 *   tasks  workers hired in a slot, each for a task of its own; default 1. With more, the extension of section 7:
 *          a combination of workers is an arm, and each slot takes the one that is found greedily by I/c instead of a
 *          draw, which would rarely be another one (Lemma 4.3). A plan has `pulls` such slots, and fewer workers where
 *          the budget does not last for more. Each worker's answers are observed, so that I stays an index of workers
 *
 * With the noise of two brokers v is the quantile at t^-4 of the noise that the arm's last release has.
 *
 * Behind a privatizer r is converted back to scores, and the widths are divided by the privatizer's slope. A step costs
 * O(N), plus at most O(N) for each further pull or task.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/recruits.h"

static const char *const noise_words[] = {"printed", "sound", NULL};
static const struct cv_param_rule rules[] = {
    {.key = "noise",
     .choices = noise_words,
     .fallback_text = "sound",
     .help = "what delta of the paper is. sound: the campaign's epsilon; printed: that times the workers"},
    {.key = "pulls",
     .low = 1,
     .high = 65535,
     .whole = true,
     .fallback = 1,
     .help = "draws of a plan; more make fewer plans"},
    {.key = "tasks",
     .low = 1,
     .high = 65535,
     .whole = true,
     .fallback = 1,
     .help = "workers hired in each draw, each for a task of its own"},
};

struct dpu {
  struct cv_recruits recruits;
  uint64_t pulls; /* per plan */
  uint32_t tasks;
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
  self->tasks = (uint32_t)cv_params_number(params, "tasks");
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
  double published = sqrt(8) / self->delta * log(4 * pow(t, 4)) * (log(t) + 1);
  double spread = 2 * log(t);
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct cv_recruit *arm = &self->arm[i];
    double z = (double)arm->pulls;
    double width = (sqrt(spread / z) + cv_recruits_noise(self, i, published, 4 * log(t)) / z) / arm->slope;
    self->density[i] = arm->pulls == 0 ? (double)NAN : (arm->mean + width) / arm->cost;
  }
  const struct dpu *dpu = (const struct dpu *)policy;
  if (dpu->tasks > 1) {
    cv_recruits_combine(self, self->density, self->left_micro, dpu->tasks, dpu->pulls);
    cv_recruits_want_picks(self, step);
  } else {
    cv_recruits_fill(self, self->density, self->left_micro);
    cv_recruits_want_drawn(self, plan, dpu->pulls, step);
  }
  return CV_OK;
}

const struct cv_policy_class cv_policy_dpu = {
    .name = "dpu",
    .about = "hires by upper confidence bounds (DPU)",
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
