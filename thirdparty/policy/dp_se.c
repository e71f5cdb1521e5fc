/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DP-SE, private successive elimination (Sajed and Sheffet 2019, Algorithm 2), a baseline for GAP that uses no graph.
 * Epoch e plays every active arm
 *
 *     max{32 ln(8 n e^2/delta)/D^2, 8 ln(4 n e^2/delta)/(epsilon D)} + 1 times, D = 2^-e,
 *
 * (more with the noise of two brokers) and drops an arm whose noisy mean is more than two radii below the best, with
 * the terms of phases.h. Means are over the epoch alone.
 *
 * Parameter: delta, as in GAP. Needs mechanism batch and a campaign without a graph.
 */
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/phases.h"

static const struct cv_param_rule rules[] = {CV_ELIMINATION_DELTA};

static double radius(const struct cv_elimination *self, const struct cv_runner *arm) {
  return cv_phases_radius(self, &arm->tail, cv_phases_plays(self) + 1);
}

static void ask(struct cv_elimination *self, uint64_t number) {
  uint32_t plays = cv_phases_plays_asked(cv_phases_plays(self) + 1);
  for (uint32_t i = 0; i < self->arms; i++) {
    self->arm[i].asked = self->arm[i].active ? plays : 0;
  }
}

static const struct cv_elimination_rules elimination = {.radius = radius, .ask = ask, .stays = true};

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct cv_elimination *self;
  CV_TRY(cv_elimination_new(spec, seed, sizeof(*self), &cv_policy_dp_se, &elimination, &self));
  *ret = &self->policy;
  return CV_OK;
}

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  CV_TRY(cv_elimination_needs(spec, cv_traits_fresh_sums, "needs the mean of one epoch with one noise", why));
  return cv_elimination_needs_no_graph(spec, why);
}

const struct cv_policy_class cv_policy_dp_se = {
    .name = "dp-se",
    .about = "the best arm, by elimination in phases",
    .kind = CV_POLICY_GRAPH,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .has_floor = true,
    .fits = fits,
    .create = create,
    .reads_noise = true,
    .expect = cv_elimination_expect,
    .destroy = cv_elimination_destroy,
    .apply = cv_elimination_apply,
    .step = cv_elimination_step,
    .standing = cv_elimination_standing,
    .save = cv_elimination_save,
    .load = cv_elimination_load,
};
