/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AAE, active arm elimination (Even-Dar, Mannor and Mansour, "Action Elimination and Stopping Conditions for the
 * Multi-Armed Bandit and Reinforcement Learning Problems", 2006, Algorithm 3), the basis of GAP and a baseline for it.
 * It uses neither graph nor privacy. The policy plays every active arm in turn; with n tokens of each it drops an arm
 * whose mean is more than 2 sqrt(ln(4 K n^2/delta)/n) below the best. Means are over all tokens.
 *
 * Parameters: delta, as in GAP; tokens_per_round, plays of each arm between two tests (default 1, as in the paper; each
 * test needs a plan, so a larger number is faster over a network and as sound).
 *
 * Needs mechanism none, with a trusted third-party or behind randomized response, and a campaign without a graph.
 */
#include <math.h>

#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/elimination.h"

static const struct cv_param_rule rules[] = {
    CV_ELIMINATION_DELTA,
    {.key = "tokens_per_round",
     .low = 1,
     .high = CV_PLAN_TOKENS_MAX,
     .whole = true,
     .fallback = 1,
     .help = "plays of each arm that is left between two tests"},
};

struct aae {
  struct cv_elimination base;
  uint32_t tokens_per_round;
};

static double radius(const struct cv_elimination *self, const struct cv_runner *arm) {
  double n = (double)arm->tokens;
  return sqrt(log(4 * self->arms * n * n / self->delta) / n) / self->slope;
}

static void ask(struct cv_elimination *self, uint64_t number) {
  for (uint32_t i = 0; i < self->arms; i++) {
    self->arm[i].asked = self->arm[i].active ? ((struct aae *)self)->tokens_per_round : 0;
  }
}

static const struct cv_elimination_rules elimination = {.radius = radius, .ask = ask};

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct cv_elimination *base;
  CV_TRY(cv_elimination_new(spec, seed, sizeof(struct aae), &cv_policy_aae, &elimination, &base));
  ((struct aae *)base)->tokens_per_round = cv_policy_round(spec);
  *ret = &base->policy;
  return CV_OK;
}

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  CV_TRY(cv_elimination_needs(spec, cv_traits_exact_sums, "assumes sums without noise", why));
  return cv_elimination_needs_no_graph(spec, why);
}

const struct cv_policy_class cv_policy_aae = {
    .name = "aae",
    .about = "the best arm by elimination, without privacy",
    .kind = CV_POLICY_GRAPH,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .has_floor = true,
    .fits = fits,
    .create = create,
    .destroy = cv_elimination_destroy,
    .apply = cv_elimination_apply,
    .step = cv_elimination_step,
    .standing = cv_elimination_standing,
    .save = cv_elimination_save,
    .load = cv_elimination_load,
};
