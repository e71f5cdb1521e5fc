/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epsilon_t-greedy (Auer, Cesa-Bianchi and Fischer 2002) on noisy means, with costs charged as in Zhao et al. (2020,
 * section 5.1). First it pulls every arm once. Then, in slot t, it pulls a random affordable arm with probability
 * epsilon_t = min{1, 5N/(t d^2)}, else the affordable arm with the highest r/z, whatever its cost.
 *
 * d is in Auer et al. a lower bound of the distance between the best arm and the next; in Zhao et al. the mean of the
 * densest arm (q/c) minus that of the least dense.
 *
 *   eps-greedy           d is the parameter `gap`, in [0, 1]; 0, the default: the gap of Zhao et al., estimated by the
 *                        present noisy means and clipped to [0, 1]
 *   eps-greedy-true-gap  d is the gap of the true means, as Zhao et al. print it. Only for a simulation in one process,
 *                        since a third-party must not get the true means. No parameters. Without the means it pulls at
 *                        random
 *
 * A step costs O(N).
 */
#include <math.h>
#include <stdlib.h>

#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/recruits.h"

static const struct cv_param_rule rules[] = {
    {.key = "gap",
     .low = 0,
     .high = 1,
     .fallback = 0,
     .help = "d of the share of random hires, 5N/(t d^2); 0: estimated from the noisy means"}};

struct greedy {
  struct cv_recruits recruits;
  double gap;
  bool is_estimated; /* the gap, in each step */
};

static enum cv_err create_of(const struct cv_policy_class *class, const struct cv_spec *spec, uint64_t seed,
                             struct greedy **ret) {
  struct greedy *self = calloc(1, sizeof(*self));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  enum cv_err err = cv_recruits_init(&self->recruits, class, spec, seed);
  if (err != CV_OK) {
    free(self);
    return err;
  }
  *ret = self;
  return CV_OK;
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct greedy *self;
  CV_TRY(create_of(&cv_policy_eps_greedy, spec, seed, &self));
  self->gap = cv_params_number(&spec->policy.params, "gap");
  self->is_estimated = self->gap == 0;
  *ret = &self->recruits.policy;
  return CV_OK;
}

static enum cv_err create_true_gap(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct greedy *self;
  CV_TRY(create_of(&cv_policy_eps_greedy_true_gap, spec, seed, &self));
  *ret = &self->recruits.policy;
  return CV_OK;
}

/* The mean of the densest arm minus that of the least dense; arms of mean NAN do not count. */
static double gap_between(const struct cv_recruits *recruits, const double *mean) {
  double high = -(double)INFINITY, low = (double)INFINITY, mean_high = 0, mean_low = 0;
  for (uint32_t i = 0; i < recruits->arms; i++) {
    double density = mean[i] / recruits->arm[i].cost; /* NAN exceeds nothing */
    if (density > high) {
      high = density;
      mean_high = mean[i];
    }
    if (density < low) {
      low = density;
      mean_low = mean[i];
    }
  }
  return mean_high - mean_low;
}

static void tell(struct cv_policy *policy, const double *mean) {
  struct greedy *self = (struct greedy *)policy;
  self->gap = gap_between(&self->recruits, mean); /* may be negative: only its square is used */
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  struct greedy *self = (struct greedy *)policy;
  struct cv_recruits *recruits = &self->recruits;
  CV_TRY(cv_recruits_step(recruits, step));
  if (step->done || cv_recruits_want_first(recruits, step)) {
    return CV_OK;
  }
  double *mean = recruits->density, t = (double)recruits->pulls + 1;
  for (uint32_t i = 0; i < recruits->arms; i++) {
    mean[i] = recruits->arm[i].pulls == 0 ? (double)NAN : recruits->arm[i].mean;
  }
  double gap = self->is_estimated ? fmin(fmax(gap_between(recruits, mean), 0), 1) : self->gap;
  struct cv_rng_seeded stream;
  cv_recruits_stream(recruits, plan, &stream);
  /* unit < 5N/(t gap^2), multiplied out: the gap may be 0. */
  bool explores = cv_rng_unit(&stream.rng) * t * gap * gap < 5.0 * recruits->arms;
  uint32_t arm = explores ? cv_recruits_any(recruits, &stream.rng) : cv_recruits_best(recruits, mean);
  cv_recruits_want(recruits, step, arm, 1);
  return CV_OK;
}

static void save_true_gap(const struct cv_policy *policy, struct cv_buf *out) {
  cv_recruits_save(policy, out);
  cv_buf_put_f64(out, ((const struct greedy *)policy)->gap);
}

static enum cv_err load_true_gap(struct cv_policy *policy, struct cv_reader *in) {
  struct greedy *self = (struct greedy *)policy;
  CV_TRY(cv_recruits_load(policy, in));
  self->gap = cv_read_f64(in);
  return cv_reader_done(in) && fabs(self->gap) <= 1 ? CV_OK : CV_ERR_DAMAGED;
}

const struct cv_policy_class cv_policy_eps_greedy = {
    .name = "eps-greedy",
    .about = "hires a random worker less and less often, else the one with the best ratio so far",
    .kind = CV_POLICY_RECRUITMENT,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .fits = cv_recruits_fits,
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

const struct cv_policy_class cv_policy_eps_greedy_true_gap = {
    .name = "eps-greedy-true-gap",
    .about = "likewise with the true gap known, for comparison",
    .kind = CV_POLICY_RECRUITMENT,
    .fits = cv_recruits_fits,
    .create = create_true_gap,
    .reads_noise = true,
    .expect = cv_recruits_expect,
    .tell = tell,
    .destroy = cv_recruits_destroy,
    .apply = cv_recruits_apply,
    .step = make_step,
    .standing = cv_recruits_standing,
    .tells_noise = true,
    .save = save_true_gap,
    .load = load_true_gap,
};
