/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of the elimination policies. They run in phases, each of which shows every active arm. When every active
 * arm has its release, arm a is dropped if
 *
 *     mean_a + radius_a < max over the active arms of (mean_b - radius_b),
 *
 * with the noisy means of the last releases. The campaign ends when one arm is left. A policy defines only its radius
 * and its plans.
 *
 * Behind randomized response the mean token is converted back to the mean score. `slope` is the smallest factor between
 * an arm's mean score and its mean token (1 without a privatizer): a radius of tokens is divided by it, so the policy
 * needs 1/slope^2 as many tokens.
 */
#ifndef CV_THIRDPARTY_ELIMINATION_H
#define CV_THIRDPARTY_ELIMINATION_H

#include "common/base/local.h"
#include "common/base/mechanisms.h"
#include "common/base/neighbours.h"
#include "thirdparty/policy/policy.h"
#include "thirdparty/policy/tail.h"

/* An arm. */
struct cv_runner {
  bool active;         /* not dropped */
  bool fresh;          /* has a release of the last plan */
  uint32_t asked;      /* plays in the last plan */
  uint64_t plays;      /* in all released plans */
  uint64_t tokens;     /* in the last release; 0 = none yet */
  double mean;         /* of the last release, in scores */
  struct cv_tail tail; /* of its noise; not known after `load` */
  double radius;       /* as of the last judgement or release */
};

struct cv_elimination;

struct cv_elimination_rules {
  /* The radius of an arm with a release, in scores; finite and at least 0. */
  double (*radius)(const struct cv_elimination *self, const struct cv_runner *arm);
  /* The radius of a release stays until the judgement, since it depends on nothing that comes between; else it is
   * computed again then. It must stay if it depends on the noise. */
  bool stays;
  /* Sets `asked` of the active arms (initially 0) so that each is shown; `number` selects the plan's random stream. */
  void (*ask)(struct cv_elimination *self, uint64_t number);
  /* Returns extra noise for the mean of a release; NULL: none. */
  double (*blur)(const struct cv_elimination *self, const struct cv_release *release);
};

/* Begins each policy's own struct. */
struct cv_elimination {
  struct cv_policy policy;
  const struct cv_elimination_rules *rules;
  double delta, epsilon, slope;
  uint32_t floor;   /* of plays of an arm that a plan asks for: more plays than a rule asks for only narrow a mean */
  uint32_t brokers; /* that are expected to add noise */
  struct cv_local local;
  struct cv_neighbours graph;
  uint64_t seed;
  uint64_t phase; /* from 1; 0 before the first plan */
  uint64_t left;  /* the part of the phase not planned yet, if one phase takes several plans */
  uint32_t arms, active;
  struct cv_runner *arm;
};

/*
 * Allocates `size` bytes that begin with struct cv_elimination, sets that up from a checked spec and zeroes the rest.
 * Parameter `delta`: 0 means one over the token limit.
 */
CV_MUST_USE enum cv_err cv_elimination_new(const struct cv_spec *spec, uint64_t seed, size_t size,
                                           const struct cv_policy_class *class,
                                           const struct cv_elimination_rules *rules, struct cv_elimination **ret);

/* Members of the policies' classes. */
void cv_elimination_expect(struct cv_policy *policy, uint32_t brokers);
void cv_elimination_destroy(struct cv_policy *policy);
void cv_elimination_apply(struct cv_policy *policy, const struct cv_release *release);
CV_MUST_USE enum cv_err cv_elimination_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step);
void cv_elimination_standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret);
void cv_elimination_save(const struct cv_policy *policy, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_elimination_load(struct cv_policy *policy, struct cv_reader *in);

/* For `fits`: checks that the mechanism has the trait, and that tokens lie in [0, 1]. `because` completes "policy NAME
 * ..." in the message. */
CV_MUST_USE enum cv_err cv_elimination_needs(const struct cv_spec *spec, cv_traits_fn *has, const char *because,
                                             struct cv_why *why);
/* For `fits`: checks that the campaign has no graph, for policies that would not use the neighbours' scores. */
CV_MUST_USE enum cv_err cv_elimination_needs_no_graph(const struct cv_spec *spec, struct cv_why *why);

/* The rule of parameter `delta`. */
#define CV_ELIMINATION_DELTA                                                \
  {                                                                         \
    .key = "delta", .low = 0, .high = 1, .high_open = true, .fallback = 0,  \
    .help = "the probability of an error, at most; 0: 1 over limits.tokens" \
  }

#endif
