/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epsilon_t-greedy (Auer, Cesa-Bianchi and Fischer 2002) on noisy means, with costs charged as in Zhao et al. (2020,
 * section 5.1). First it pulls every arm once. Then, in slot t, it pulls a random affordable arm with probability
 * epsilon_t = min{1, 5N/(t d^2)}, else the affordable arm with the highest r/z, whatever its cost.
 *
 * Parameters:
 *   gap  d, in [0, 1]. In Auer et al. a lower bound of the distance between the best arm and the next; in Zhao et al.
 *        the mean of the densest arm (q/c) minus that of the least dense. 0, the default: the latter, with the present
 *        noisy means, clipped to [0, 1]
 *
 * A step costs O(N).
 */
#include <math.h>
#include <stdlib.h>

#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/recruits.h"

static const struct cv_param_rule rules[] = {{.key = "gap", .low = 0, .high = 1, .fallback = 0}};

struct greedy {
  struct cv_recruits recruits;
  double gap;
};

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct greedy *self = calloc(1, sizeof(*self));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  enum cv_err err = cv_recruits_init(&self->recruits, &cv_policy_eps_greedy, spec, seed);
  if (err != CV_OK) {
    free(self);
    return err;
  }
  self->gap = cv_params_number(&spec->policy.params, "gap");
  *ret = &self->recruits.policy;
  return CV_OK;
}

static double gap_of(const struct greedy *self) {
  if (self->gap > 0) {
    return self->gap;
  }
  double high = -(double)INFINITY, low = (double)INFINITY, gap = 0, mean_high = 0, mean_low = 0;
  for (uint32_t i = 0; i < self->recruits.arms; i++) {
    const struct cv_recruit *arm = &self->recruits.arm[i];
    double density = arm->mean / arm->cost;
    if (arm->pulls > 0 && density > high) {
      high = density;
      mean_high = arm->mean;
    }
    if (arm->pulls > 0 && density < low) {
      low = density;
      mean_low = arm->mean;
    }
  }
  gap = mean_high - mean_low;
  return fmin(fmax(gap, 0), 1);
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  struct greedy *self = (struct greedy *)policy;
  struct cv_recruits *recruits = &self->recruits;
  CV_TRY(cv_recruits_step(recruits, step));
  if (step->done || cv_recruits_want_first(recruits, step)) {
    return CV_OK;
  }
  double gap = gap_of(self), t = (double)recruits->pulls + 1;
  struct cv_rng_seeded stream;
  cv_recruits_stream(recruits, plan, &stream);
  /* unit < 5N/(t gap^2), multiplied out: the gap may be 0. */
  if (cv_rng_unit(&stream.rng) * t * gap * gap < 5.0 * recruits->arms) {
    cv_recruits_want(recruits, step, cv_recruits_any(recruits, &stream.rng), 1);
    return CV_OK;
  }
  for (uint32_t i = 0; i < recruits->arms; i++) {
    recruits->density[i] = recruits->arm[i].pulls == 0 ? (double)NAN : recruits->arm[i].mean;
  }
  cv_recruits_want(recruits, step, cv_recruits_best(recruits, recruits->density), 1);
  return CV_OK;
}

const struct cv_policy_class cv_policy_eps_greedy = {
    .name = "eps-greedy",
    .kind = CV_POLICY_RECRUITMENT,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .fits = cv_recruits_fits,
    .create = create,
    .destroy = cv_recruits_destroy,
    .apply = cv_recruits_apply,
    .step = make_step,
    .standing = cv_recruits_standing,
    .save = cv_recruits_save,
    .load = cv_recruits_load_all,
};
