/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DPF, epsilon-first (Zhao et al. 2020, Algorithm 1). With the share epsilon of the budget it explores: it pulls the
 * arms in turn, the cheapest first (lines 3 to 10). At the first arm that no longer fits it restarts from the cheapest
 * arm, until that does not fit either. With the rest it always pulls the affordable arm with the largest q/c (lines 12
 * to 20), where q = r/z at the end of the exploration.
 *
 * Parameters:
 *   epsilon     share of the budget to explore with, in (0, 1); default 0.1
 *   epsilon_at  the budget B_0, in units of money, at which that is the share. At another budget B it is the share in
 *               the proportion of Theorem 3.5, epsilon sqrt(v(B)/B B_0/v(B_0)), at most 1, with c the least cost and
 *               v(B) = ln(2B/c) (ln(B/c) + 1): the theorem's own share has the true means in it. 0, the default: at any
 *               budget
 *   noise       printed  one plan per pull, so the arm's counter releases after each of its pulls. In the paper all N
 *                        counters tick in every slot and share delta: the campaign's epsilon, which each arm may spend,
 *                        is then delta/N
 *               sound    one plan explores, another spends the rest. A slot shows one arm, so arms compose in parallel:
 *                        the campaign's epsilon is delta. With mechanism batch the noise is one Lap(1/delta) per arm
 *
 * The remainder of the exploration budget is spent with the rest (in the paper it lapses). Unexplored arms are pulled
 * only when no explored arm is affordable, the cheapest first. A step costs O(N).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/recruits.h"

static const char *const noise_words[] = {"printed", "sound", NULL};
static const struct cv_param_rule rules[] = {
    {.key = "epsilon",
     .low = 0,
     .low_open = true,
     .high = 1,
     .high_open = true,
     .fallback = 0.1,
     .help = "the share of the budget for exploration"},
    {.key = "epsilon_at",
     .low = 0,
     .high = 1e9,
     .fallback = 0,
     .help = "the budget at which that is the share, in money; it falls with the budget. 0: at any budget"},
    {.key = "noise",
     .choices = noise_words,
     .fallback_text = "sound",
     .help = "what delta of the paper is. sound: the campaign's epsilon; printed: that times the workers"},
};

struct dpf {
  struct cv_recruits recruits;
  uint64_t share_micro; /* epsilon B */
  bool by_pull;
  bool exploits;
  uint32_t turn; /* index in by_cost of the next arm to explore */
};

static struct dpf *of(struct cv_policy *policy) {
  return (struct dpf *)policy;
}

/* v(B)/B up to a factor: how the square of the share falls with the budget. */
static double order(double budget, double least_cost) {
  double pulls = fmax(budget / least_cost, 1);
  return log(2 * pulls) * (log(pulls) + 1) / pulls;
}

static double share_of(const struct dpf *self, const struct cv_params *params) {
  double epsilon = cv_params_number(params, "epsilon"), at = cv_params_number(params, "epsilon_at");
  double budget = (double)self->recruits.budget_micro / (double)CV_MICRO;
  double least = self->recruits.arm[self->recruits.by_cost[0]].cost;
  return at == 0 ? epsilon : fmin(1, epsilon * sqrt(order(budget, least) / order(at, least)));
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct dpf *self = calloc(1, sizeof(*self));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  enum cv_err err = cv_recruits_init(&self->recruits, &cv_policy_dpf, spec, seed);
  if (err != CV_OK) {
    free(self);
    return err;
  }
  self->share_micro = (uint64_t)(share_of(self, &spec->policy.params) * (double)spec->budget_micro);
  self->by_pull = strcmp(cv_params_text(&spec->policy.params, "noise"), "printed") == 0;
  *ret = &self->recruits.policy;
  return CV_OK;
}

static uint64_t left_to_explore(const struct dpf *self) {
  uint64_t spent = self->recruits.budget_micro - self->recruits.left_micro;
  return spent < self->share_micro ? self->share_micro - spent : 0;
}

static uint64_t cost_at(const struct cv_recruits *recruits, uint32_t place) {
  return recruits->arm[recruits->by_cost[place]].cost_micro;
}

static void explore_one(struct dpf *self, uint64_t left, struct cv_policy_step *step) {
  struct cv_recruits *recruits = &self->recruits;
  if (self->turn == recruits->arms || cost_at(recruits, self->turn) > left) {
    self->turn = 0;
  }
  cv_recruits_want(recruits, step, recruits->by_cost[self->turn++], 1);
}

/* The whole exploration as one plan. A turn covers the longest affordable prefix of by_cost, and later turns never
 * cover a longer one. So the whole prefix is taken as often as it fits, then the next shorter one with the remainder,
 * and so on. */
static void explore_all(struct dpf *self, uint64_t left, struct cv_policy_step *step) {
  struct cv_recruits *recruits = &self->recruits;
  uint64_t sum = 0, turns = 0;
  uint32_t n = 0;
  while (n < recruits->arms && cost_at(recruits, n) <= left - sum) {
    sum += cost_at(recruits, n++);
  }
  for (uint32_t j = n; j-- > 0; sum -= cost_at(recruits, j)) {
    CV_REQUIRE(sum > 0); /* every cost is positive */
    turns += left / sum;
    left %= sum;
    recruits->times[j] = turns;
  }
  for (uint32_t j = 0; j < n; j++) {
    cv_recruits_want(recruits, step, recruits->by_cost[j], recruits->times[j]);
  }
}

/* Ends the exploration: fixes the densities q/c for the rest of the campaign. */
static void settle(struct dpf *self) {
  self->exploits = true;
  for (uint32_t i = 0; i < self->recruits.arms; i++) {
    const struct cv_recruit *arm = &self->recruits.arm[i];
    self->recruits.density[i] = arm->pulls > 0 ? arm->mean / arm->cost : -(double)INFINITY;
  }
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  struct dpf *self = of(policy);
  struct cv_recruits *recruits = &self->recruits;
  (void)plan;
  CV_TRY(cv_recruits_step(recruits, step));
  if (step->done) {
    return CV_OK;
  }
  uint64_t left = left_to_explore(self);
  if (!self->exploits && cost_at(recruits, 0) <= left) {
    if (self->by_pull) {
      explore_one(self, left, step);
    } else {
      explore_all(self, left, step);
    }
    return CV_OK;
  }
  if (!self->exploits) {
    settle(self);
  }
  cv_recruits_fill(recruits, self->recruits.density, recruits->left_micro);
  if (self->by_pull) {
    cv_recruits_want(recruits, step, recruits->pick[0], 1);
  } else {
    cv_recruits_want_picks(recruits, step);
  }
  return CV_OK;
}

static void save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct dpf *self = (const struct dpf *)policy;
  cv_recruits_save(policy, out);
  cv_buf_put_u8(out, self->exploits);
  cv_buf_put_u32(out, self->turn);
  for (uint32_t i = 0; self->exploits && i < self->recruits.arms; i++) {
    cv_buf_put_f64(out, self->recruits.density[i]);
  }
}

static enum cv_err load(struct cv_policy *policy, struct cv_reader *in) {
  struct dpf *self = of(policy);
  CV_TRY(cv_recruits_load(policy, in));
  uint8_t exploits = cv_read_u8(in);
  self->turn = cv_read_u32(in);
  if (exploits > 1 || self->turn > self->recruits.arms) {
    return CV_ERR_DAMAGED;
  }
  self->exploits = exploits;
  for (uint32_t i = 0; self->exploits && i < self->recruits.arms; i++) {
    self->recruits.density[i] = cv_read_f64(in);
    if (!isfinite(self->recruits.density[i]) && self->recruits.density[i] != -(double)INFINITY) {
      return CV_ERR_DAMAGED;
    }
  }
  return cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}

const struct cv_policy_class cv_policy_dpf = {
    .name = "dpf",
    .about = "hires after an exploration of fixed size (DPF)",
    .kind = CV_POLICY_RECRUITMENT,
    /* With noise printed the plans go on one pull at a time after settle(), by densities of an earlier release. */
    .last_key = "noise",
    .last_word = "sound",
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
    .save = save,
    .load = load,
};
