/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GAP, graph-based arm elimination with differential privacy (Lu, Wang, Qiu and Zhang 2022, Algorithm 1), and GAPU,
 * their variant whose independent set ignores the means.
 *
 * A phase chooses a maximal independent set of the graph of the active arms: GAP repeatedly takes the remaining arm
 * with the highest noisy mean (lines 26 to 32; at random in the first phase and among equals), GAPU a random remaining
 * arm, or with `sets: uniform` one of all maximal independent sets, each with the same probability. (The paper draws
 * uniformly from all independent sets, section 5.2; one that is not maximal would leave an active arm without a score.)
 * The phase plays each arm of the set `plays` times (phases.h), which shows every active arm at least as often.
 * Then it drops an arm whose mean is more than two radii below the best (line 23). Means are over the phase alone. The
 * broker refuses a phase that exceeds the token limit, which ends the campaign before any assignment of that phase.
 *
 * Parameters:
 *   delta             error probability, below 1; 0, the default, means one over the token limit (as in the paper)
 *   noise    sound    the mean of an arm shown o times has Laplace noise of scale 1/(epsilon o), the mechanism's noise
 *            printed  scale 1/(epsilon plays), o >= plays, as in line 21: the policy adds the missing noise from its
 *                     own randomness. A Laplace variable of scale a, plus with probability 1 - (a/b)^2 one of scale b,
 *                     is one of scale b. This adds no privacy, since the release has left the broker. With two
 *                     brokers each of the two noises is raised so
 *   sets     ordered  of gapu: the arms are taken in a random order
 *            uniform  every maximal independent set has the same probability; for at most CV_INDEPENDENT_ARMS arms
 *
 * Needs mechanism batch. A step costs O(K log K) and the edges.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/independent.h"
#include "thirdparty/policy/phases.h"

static const char *const noise_words[] = {"sound", "printed", NULL};

static const char *const set_words[] = {"ordered", "uniform", NULL};

#define NOISE_RULE                                                                                       \
  {                                                                                                      \
    .key = "noise", .choices = noise_words, .fallback_text = "sound",                                    \
    .help = "sound: the mechanism's noise alone; printed: the policy adds to it what the paper has more" \
  }

static const struct cv_param_rule gap_rules[] = {CV_ELIMINATION_DELTA, NOISE_RULE};
static const struct cv_param_rule gapu_rules[] = {
    CV_ELIMINATION_DELTA,
    NOISE_RULE,
    {.key = "sets",
     .choices = set_words,
     .fallback_text = "ordered",
     .help = "ordered: arms in a random order; uniform: every maximal independent set alike, for few arms"},
};

struct candidate {
  double mean;
  uint64_t draw; /* random order among equal means */
  uint32_t arm;
};

struct gap {
  struct cv_elimination base;
  bool by_mean, is_uniform;
  struct candidate *candidate; /* room for each arm */
  bool *shown;                 /* per arm: a neighbour is in the set */
};

static double radius(const struct cv_elimination *self, const struct cv_runner *arm) {
  return cv_phases_radius(self, &arm->tail, cv_phases_plays(self));
}

static int compare(const void *a, const void *b) {
  const struct candidate *x = a, *y = b;
  if (x->mean != y->mean) {
    return x->mean > y->mean ? -1 : 1;
  }
  return x->draw != y->draw ? (x->draw < y->draw ? -1 : 1) : (x->arm > y->arm) - (x->arm < y->arm);
}

/* Sorts the active arms in the order in which the set takes them; returns their number. */
static uint32_t line_up(struct gap *self, uint64_t number) {
  struct cv_rng_seeded seeded;
  uint32_t n = 0;
  cv_rng_seeded_init(&seeded, self->base.seed, CV_RNG_POLICY, number, 0);
  for (uint32_t i = 0; i < self->base.arms; i++) {
    const struct cv_runner *arm = &self->base.arm[i];
    uint64_t draw = cv_rng_u64(&seeded.rng);
    self->shown[i] = false;
    if (arm->active) {
      self->candidate[n++] = (struct candidate){.mean = self->by_mean ? arm->mean : 0, .draw = draw, .arm = i};
    }
  }
  qsort(self->candidate, n, sizeof(*self->candidate), compare);
  return n;
}

static void ask_uniformly(struct cv_elimination *base, uint64_t number) {
  const struct cv_neighbours *graph = &base->graph;
  uint32_t plays = cv_phases_plays_asked(cv_phases_plays(base)), neighbour[CV_INDEPENDENT_ARMS] = {0}, active = 0;
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, base->seed, CV_RNG_POLICY, number, 0);
  for (uint32_t arm = 0; arm < base->arms; arm++) {
    active |= base->arm[arm].active ? 1U << arm : 0;
    for (uint32_t at = graph->first[arm]; at < graph->first[arm + 1]; at++) {
      neighbour[arm] |= 1U << graph->arm[at];
    }
  }
  uint32_t set = cv_independent_draw(neighbour, active, &seeded.rng);
  for (uint32_t arm = 0; arm < base->arms; arm++) {
    base->arm[arm].asked = (set >> arm & 1) != 0 ? plays : 0;
  }
}

static void ask(struct cv_elimination *base, uint64_t number) {
  struct gap *self = (struct gap *)base;
  if (self->is_uniform) {
    ask_uniformly(base, number);
    return;
  }
  uint32_t plays = cv_phases_plays_asked(cv_phases_plays(base));
  uint32_t n = line_up(self, number);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t arm = self->candidate[i].arm;
    if (self->shown[arm]) {
      continue;
    }
    base->arm[arm].asked = plays;
    for (uint32_t at = base->graph.first[arm]; at < base->graph.first[arm + 1]; at++) {
      self->shown[base->graph.arm[at]] = true;
    }
  }
}

/* What raises Lap(rest/rate) to Lap(1/rate). */
static double blur_one(double rest, double rate, struct cv_rng *rng) {
  if (cv_rng_unit(rng) < rest * rest) {
    return 0;
  }
  double size = -log(1 - cv_rng_unit(rng)) / rate;
  return cv_rng_u64(rng) % 2 == 0 ? size : -size;
}

/* The noise that raises each Lap(1/(epsilon o)) of the release to Lap(1/(epsilon plays)), in mean tokens. */
static double blur_as_printed(const struct cv_elimination *self, const struct cv_release *release) {
  double plays = cv_phases_plays(self), rest = plays / (double)release->tokens, sum = 0;
  uint64_t noises = cv_tail_of(&release->noise).count;
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, self->seed, CV_RNG_POLICY, release->plan, (uint64_t)release->arm + 1);
  for (uint64_t i = 0; i < noises && i < CV_BROKERS_MAX; i++) {
    sum += blur_one(rest, self->epsilon * plays, &seeded.rng);
  }
  return sum;
}

static const struct cv_elimination_rules sound = {.radius = radius, .ask = ask, .stays = true};
static const struct cv_elimination_rules printed = {
    .radius = radius, .ask = ask, .stays = true, .blur = blur_as_printed};

static bool is_uniform(const struct cv_spec *spec) {
  return strcmp(cv_params_text(&spec->policy.params, "sets"), "uniform") == 0;
}

static void destroy(struct cv_policy *policy) {
  struct gap *self = (struct gap *)policy;
  free(self->candidate);
  free(self->shown);
  cv_elimination_destroy(policy);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, const struct cv_policy_class *class,
                          struct cv_policy **ret) {
  bool is_printed = strcmp(cv_params_text(&spec->policy.params, "noise"), "printed") == 0;
  struct cv_elimination *base;
  CV_TRY(cv_elimination_new(spec, seed, sizeof(struct gap), class, is_printed ? &printed : &sound, &base));
  struct gap *self = (struct gap *)base;
  self->by_mean = class == &cv_policy_gap;
  self->is_uniform = !self->by_mean && is_uniform(spec);
  self->candidate = calloc(spec->arms, sizeof(*self->candidate));
  self->shown = calloc(spec->arms, sizeof(*self->shown));
  if (self->candidate == NULL || self->shown == NULL) {
    destroy(&base->policy);
    return CV_ERR_NOMEM;
  }
  *ret = &base->policy;
  return CV_OK;
}

static enum cv_err create_gap(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  return create(spec, seed, &cv_policy_gap, ret);
}

static enum cv_err create_gapu(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  return create(spec, seed, &cv_policy_gapu, ret);
}

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  return cv_elimination_needs(spec, cv_traits_fresh_sums, "needs the mean of one phase with one noise", why);
}

static enum cv_err fits_gapu(const struct cv_spec *spec, struct cv_why *why) {
  if (is_uniform(spec) && spec->arms > CV_INDEPENDENT_ARMS) {
    return cv_fail(why, CV_ERR_INVALID, "policy gapu with sets uniform has %u items; expected at most %d", spec->arms,
                   CV_INDEPENDENT_ARMS);
  }
  return fits(spec, why);
}

const struct cv_policy_class cv_policy_gap = {
    .name = "gap",
    .about = "the best arm, if neighbours are observed as well",
    .kind = CV_POLICY_GRAPH,
    .rules = gap_rules,
    .rule_count = CV_COUNT(gap_rules),
    .has_floor = true,
    .fits = fits,
    .create = create_gap,
    .reads_noise = true,
    .expect = cv_elimination_expect,
    .destroy = destroy,
    .apply = cv_elimination_apply,
    .step = cv_elimination_step,
    .standing = cv_elimination_standing,
    .save = cv_elimination_save,
    .load = cv_elimination_load,
};

const struct cv_policy_class cv_policy_gapu = {
    .name = "gapu",
    .about = "likewise, with independent sets that ignore the means",
    .kind = CV_POLICY_GRAPH,
    .rules = gapu_rules,
    .rule_count = CV_COUNT(gapu_rules),
    .has_floor = true,
    .fits = fits_gapu,
    .create = create_gapu,
    .reads_noise = true,
    .expect = cv_elimination_expect,
    .destroy = destroy,
    .apply = cv_elimination_apply,
    .step = cv_elimination_step,
    .standing = cv_elimination_standing,
    .save = cv_elimination_save,
    .load = cv_elimination_load,
};
