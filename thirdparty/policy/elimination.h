/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the policies that drop arms share: phases, each of which shows every arm that is still in the running. When all
 * of them have had their release, arm a is out if
 *
 *     mean_a + radius_a < max over the arms in the running of (mean_b - radius_b),
 *
 * the means being the noisy means of the last releases. The end: one arm is left. A policy names its radius and its
 * plans; whatever else they have in common is here, so that each of them is its formulas.
 *
 * Behind randomized response the mean token is taken back to the mean score. `slope` is the smallest factor by which an
 * arm's mean token follows its mean score (1 without a privatizer): a radius of tokens is divided by it, and so many
 * more tokens are needed.
 */
#ifndef CV_THIRDPARTY_ELIMINATION_H
#define CV_THIRDPARTY_ELIMINATION_H

#include "common/base/local.h"
#include "common/base/neighbours.h"
#include "thirdparty/policy/policy.h"

/* An arm. */
struct cv_runner {
  bool active;     /* still in the running */
  bool fresh;      /* it has had its release of the last plan */
  uint32_t asked;  /* plays in the last plan */
  uint64_t plays;  /* in the plans before it, and in it once the release is there */
  uint64_t tokens; /* in the last release; 0 = none yet */
  double mean;     /* of the last release, in scores */
  double radius;   /* as it was last judged by, or would be now */
};

struct cv_elimination;

struct cv_elimination_rules {
  /* Of an arm with a release, in scores. Finite, and at least 0. */
  double (*radius)(const struct cv_elimination *self, const struct cv_runner *arm);
  /* Sets `asked` of every active arm (0 before) so that each is shown; `number` names the plan's randomness. */
  void (*ask)(struct cv_elimination *self, uint64_t number);
  /* What to add to the mean of a release; NULL: nothing. */
  double (*blur)(const struct cv_elimination *self, const struct cv_release *release);
};

/* Begins each policy's own struct. */
struct cv_elimination {
  struct cv_policy policy;
  const struct cv_elimination_rules *rules;
  double delta, epsilon, slope;
  struct cv_local local;
  struct cv_neighbours graph;
  uint64_t seed;
  uint64_t phase; /* from 1; 0 before the first plan */
  uint64_t left;  /* of the phase, not planned yet: where one phase takes several plans */
  uint32_t arms, active;
  struct cv_runner *arm;
};

/*
 * Room for `size` bytes that begin with the above, set up from a checked spec; the rest is zero. Parameter `delta`: 0
 * stands for one over the token limit.
 */
CV_MUST_USE enum cv_err cv_elimination_new(const struct cv_spec *spec, uint64_t seed, size_t size,
                                           const struct cv_policy_class *class,
                                           const struct cv_elimination_rules *rules, struct cv_elimination **ret);

/* Rows of the policies' tables. */
void cv_elimination_destroy(struct cv_policy *policy);
void cv_elimination_apply(struct cv_policy *policy, const struct cv_release *release);
CV_MUST_USE enum cv_err cv_elimination_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step);
void cv_elimination_standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret);
void cv_elimination_save(const struct cv_policy *policy, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_elimination_load(struct cv_policy *policy, struct cv_reader *in);

/* For `fits`: the mechanism it needs, and tokens that lie in [0, 1]. */
CV_MUST_USE enum cv_err cv_elimination_needs(const struct cv_spec *spec, const char *mechanism, const char *because,
                                             struct cv_why *why);
/* For `fits`: it plays each arm by itself, and a graph would only make more be shown than is used. */
CV_MUST_USE enum cv_err cv_elimination_needs_no_graph(const struct cv_spec *spec, struct cv_why *why);

/* The row of parameter `delta`. */
#define CV_ELIMINATION_DELTA \
  { .key = "delta", .low = 0, .high = 1, .high_open = true, .fallback = 0 }

#endif
