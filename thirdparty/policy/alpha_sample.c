/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AlphaSample (Cohen, Hazan and Koren, "Online Learning with Feedback Graphs Without the Graphs", 2016, Algorithm 1),
 * the graph bandit without privacy that GAP is compared with.
 *
 * Epoch m, with r = 2^-(m+1), makes ceil(2 ln(1/delta)/r^2) passes. Each pass repeatedly plays a uniformly chosen
 * active arm that it has not seen yet, until it has seen all active arms. Then the policy drops an arm whose mean is
 * more than 2 r below the best. Means are over all tokens.
 *
 * Parameter: delta, as in GAP. Needs mechanism none, with a trusted third-party or behind randomized response.
 *
 * An epoch with many passes takes several plans. A step makes at least one pass, and as many as visit at most K log K
 * (or 4096) arms and edges. One pass visits each arm and edge once, so a step costs O(K log K + E) with E edges.
 */
#include <math.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/elimination.h"

/* Arms and edges that a step may always visit: tens of microseconds, or hundreds of passes over a few arms. */
enum { WORK_ANYWAY = 4096 };
/* Upper limit of passes, more than any campaign has tokens for. */
static const double PASSES_MAX = 1e12;

static const struct cv_param_rule rules[] = {CV_ELIMINATION_DELTA};

struct alpha_sample {
  struct cv_elimination base;
  uint32_t *unseen; /* permutation of the active arms; the first `left` entries are unseen in this pass */
  uint32_t *place;  /* per arm: its index in `unseen` */
};

/* r of the present epoch. */
static double span(const struct cv_elimination *self) {
  return exp2(-1 - (double)self->phase);
}

static double radius(const struct cv_elimination *self, const struct cv_runner *arm) {
  return span(self);
}

static uint64_t passes_of(const struct cv_elimination *self) {
  double r = span(self) * self->slope;
  return (uint64_t)fmin(ceil(-2 * log(self->delta) / (r * r)), PASSES_MAX);
}

/* Marks an arm as seen: swaps it with the last unseen arm. */
static void see(struct alpha_sample *self, uint32_t arm, uint32_t *left) {
  uint32_t at = self->place[arm], last = *left - 1;
  if (!self->base.arm[arm].active || at > last || self->unseen[at] != arm) {
    return;
  }
  self->unseen[at] = self->unseen[last];
  self->place[self->unseen[at]] = at;
  self->unseen[last] = arm;
  self->place[arm] = last;
  *left = last;
}

/* The number of passes in a plan: at least one, at most K log K visits. `work` is the number of visits of one pass. */
static uint64_t passes_at_once(const struct cv_elimination *self, uint64_t work) {
  double most = fmax(WORK_ANYWAY, self->active * log2(self->active));
  uint64_t passes = (uint64_t)(most / (double)work);
  return passes > 1 ? passes : 1;
}

/* One pass. Seen arms stay in `unseen` behind the unseen ones, so that the next pass starts with all of them. */
static void pass(struct alpha_sample *self, struct cv_rng *rng) {
  const struct cv_neighbours *graph = &self->base.graph;
  uint32_t left = self->base.active;
  while (left > 0) {
    uint32_t arm = self->unseen[cv_rng_below(rng, left)];
    self->base.arm[arm].asked++;
    see(self, arm, &left);
    for (uint32_t at = graph->first[arm]; left > 0 && at < graph->first[arm + 1]; at++) {
      see(self, graph->arm[at], &left);
    }
  }
}

static void ask(struct cv_elimination *base, uint64_t number) {
  struct alpha_sample *self = (struct alpha_sample *)base;
  struct cv_rng_seeded seeded;
  uint64_t work = 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < base->arms; i++) {
    if (base->arm[i].active) {
      work += 1 + base->graph.first[i + 1] - base->graph.first[i];
      self->place[i] = n;
      self->unseen[n++] = i;
    }
  }
  if (base->left == 0) {
    base->left = passes_of(base);
  }
  uint64_t passes = passes_at_once(base, work);
  passes = passes < base->left ? passes : base->left;
  base->left -= passes;
  cv_rng_seeded_init(&seeded, base->seed, CV_RNG_POLICY, number, 0);
  while (passes-- > 0) {
    pass(self, &seeded.rng);
  }
}

static const struct cv_elimination_rules elimination = {.radius = radius, .ask = ask};

static void destroy(struct cv_policy *policy) {
  struct alpha_sample *self = (struct alpha_sample *)policy;
  free(self->unseen);
  free(self->place);
  cv_elimination_destroy(policy);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct cv_elimination *base;
  CV_TRY(cv_elimination_new(spec, seed, sizeof(struct alpha_sample), &cv_policy_alpha_sample, &elimination, &base));
  struct alpha_sample *self = (struct alpha_sample *)base;
  self->unseen = calloc(spec->arms, sizeof(*self->unseen));
  self->place = calloc(spec->arms, sizeof(*self->place));
  if (self->unseen == NULL || self->place == NULL) {
    destroy(&base->policy);
    return CV_ERR_NOMEM;
  }
  *ret = &base->policy;
  return CV_OK;
}

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  return cv_elimination_needs(spec, cv_traits_exact_sums, "assumes sums without noise", why);
}

const struct cv_policy_class cv_policy_alpha_sample = {
    .name = "alpha-sample",
    .about = "the best arm on a graph, without privacy",
    .kind = CV_POLICY_GRAPH,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .has_floor = true,
    .fits = fits,
    .create = create,
    .destroy = destroy,
    .apply = cv_elimination_apply,
    .step = cv_elimination_step,
    .standing = cv_elimination_standing,
    .save = cv_elimination_save,
    .load = cv_elimination_load,
};
