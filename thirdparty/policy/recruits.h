/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of the policies of kind CV_POLICY_RECRUITMENT: workers with costs, and a budget. Arms are workers; each
 * token of an arm costs the arm's cost. The spent money follows from the releases, so it equals the broker's payments:
 * every plan is released before the next one is made.
 *
 * Notation of Zhao et al., "Differentially Private Unknown Worker Recruitment for Mobile Crowdsensing Using Multi-Armed
 * Bandits" (2020): N arms, costs c, budget B, pulls z, noisy sums r; its privacy level delta is the campaign's epsilon.
 */
#ifndef CV_THIRDPARTY_RECRUITS_H
#define CV_THIRDPARTY_RECRUITS_H

#include "common/base/local.h"
#include "common/base/rng.h"
#include "thirdparty/policy/policy.h"
#include "thirdparty/policy/tail.h"

struct cv_recruit {
  uint64_t cost_micro;
  double cost;    /* the same in units of money */
  double slope;   /* of the mean token as a function of the mean score, absolute; > 0 */
  uint64_t pulls; /* tokens paid for */
  int64_t sum;    /* noisy sum of the tokens, in grid units */
  double mean;    /* mean score; 0 without pulls */
  double radius;  /* of the mean, at 95 % */
  double noise;   /* the part of the radius that noise makes; NAN: not known, as after `load` */
  uint64_t releases;
  struct cv_tail tail; /* the noise of the last release */
};

/* The first member of every recruitment policy. cv_recruits_init() makes all allocations. */
struct cv_recruits {
  struct cv_policy policy;
  uint64_t seed, budget_micro;
  uint64_t epsilon_micro; /* 0: releases are exact */
  uint32_t brokers;       /* that are expected to add noise */
  double delta;           /* the paper's delta, for an index that needs it: see cv_recruits_delta() */
  bool is_fresh;          /* a release sums the tokens of its own plan only (mechanism batch) */
  struct cv_local local;
  uint32_t arms;
  uint32_t strangers;  /* arms without a pull */
  uint64_t pulls;      /* of all arms: the paper's t - 1 */
  uint64_t left_micro; /* of the budget */
  uint64_t tokens;     /* the campaign's limit of tokens: the number of requests */
  uint64_t room;       /* tokens left of that limit in the present step */
  struct cv_recruit *arm;
  uint32_t *by_cost; /* arms, the cheapest first; of equal costs the lower number first */
  /* Result of cv_recruits_fill(): `picks` arms in order of choice, and the number of tokens of each. */
  uint32_t picks;
  uint32_t *pick;
  uint64_t *times;
  uint32_t *densest; /* scratch of cv_recruits_fill() */
  /* For the policy's use: its value of each arm per unit of money. */
  double *density;
};

/* `self` must be zeroed. On failure there is nothing to free. */
CV_MUST_USE enum cv_err cv_recruits_init(struct cv_recruits *self, const struct cv_policy_class *class,
                                         const struct cv_spec *spec, uint64_t seed);

/* For `fits`: requires releases that sum the tokens of the plan (batch) or all tokens of the arm so far. */
CV_MUST_USE enum cv_err cv_recruits_fits(const struct cv_spec *spec, struct cv_why *why);
/* For `fits`: requires tokens in [0, 1]. */
CV_MUST_USE enum cv_err cv_recruits_fits_tokens(const struct cv_spec *spec, struct cv_why *why);
/* For `fits` of an index that bounds the hybrid mechanism's noise: requires hybrid or exact releases, and tokens in
 * [0, 1]. */
CV_MUST_USE enum cv_err cv_recruits_fits_index(const struct cv_spec *spec, struct cv_why *why);

/* The paper's delta: the campaign's epsilon, or with `printed` N times that, since the paper's N counters share
 * delta. */
double cv_recruits_delta(const struct cv_recruits *self, bool printed);

/*
 * The greedy knapsack (Tran-Thanh et al. 2010): takes the densest arm affordable with `micro` as often as it fits, then
 * the next with the remainder, until no arm fits. Skips arms with density NAN; ties go to the first of by_cost. Sets
 * picks, pick and times. O(N), since the remainder after an arm is below its cost. Each pick leaves less than half of
 * the money, so there are at most log2(micro) picks.
 */
void cv_recruits_fill(struct cv_recruits *self, const double *density, uint64_t micro);

/* The greedy choice of a combination (Zhao et al. 2020, section 7): the densest arm affordable with `micro`, then the
 * next that the remainder affords, up to `size` different arms. Skips arms with density NAN, ties as above. Sets picks,
 * pick and times: each pick as often as the whole combination is affordable, at most `most` times. O(N size). */
void cv_recruits_combine(struct cv_recruits *self, const double *density, uint64_t micro, uint32_t size, uint64_t most);

/* The affordable arm with the highest value (NAN: skipped); ties go to the first of by_cost. There must be one. */
uint32_t cv_recruits_best(const struct cv_recruits *self, const double *value);
/* A random affordable arm. There must be one. */
uint32_t cv_recruits_any(const struct cv_recruits *self, struct cv_rng *rng);

/* Sets *ret to the random stream of a plan. */
void cv_recruits_stream(const struct cv_recruits *self, uint64_t plan, struct cv_rng_seeded *ret);

/* Begins a step; call it first in every step. Reserves room for all wants, and sets `done` if no arm is affordable or
 * the limit of tokens is reached ("the algorithms terminate when the budget runs out or all requests are handled",
 * section 5.1). CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_recruits_step(struct cv_recruits *self, struct cv_policy_step *step);
/* Adds a want for `times` tokens of an arm, at most as many as a want may have and as the limit of tokens leaves. */
void cv_recruits_want(struct cv_recruits *self, struct cv_policy_step *step, uint32_t arm, uint64_t times);
/* Adds wants for `n` tokens drawn from the picks without replacement, each pick with probability proportional to its
 * remaining `times`; from the stream of the plan. picks > 0; overwrites `times`. */
void cv_recruits_want_drawn(struct cv_recruits *self, uint64_t plan, uint64_t n, struct cv_policy_step *step);
/* Adds wants for all picks. */
void cv_recruits_want_picks(struct cv_recruits *self, struct cv_policy_step *step);
/* Algorithm 2, lines 4 to 6: adds a want for one token of every arm without a pull, in order of number, while the money
 * lasts. False if there is no such affordable arm. */
bool cv_recruits_want_first(struct cv_recruits *self, struct cv_policy_step *step);

/* A bound of the noise in the sum of an arm with pulls, in scores, for an index with the paper's delta that allows an
 * error of e^-level: with one broker `published`, that of the paper, with more the quantile of the noise that the
 * release has (tail.h). 0 without noise. */
double cv_recruits_noise(const struct cv_recruits *self, uint32_t i, double published, double level);

/* Members of the policies' classes. A policy with further state calls save and load before it writes or reads that. */
void cv_recruits_expect(struct cv_policy *policy, uint32_t brokers);
void cv_recruits_apply(struct cv_policy *policy, const struct cv_release *release);
void cv_recruits_standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret);
void cv_recruits_save(const struct cv_policy *policy, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_recruits_load(struct cv_policy *policy, struct cv_reader *in);
/* The same for a policy without further state: CV_ERR_DAMAGED if more bytes follow. */
CV_MUST_USE enum cv_err cv_recruits_load_all(struct cv_policy *policy, struct cv_reader *in);
/* Makes a policy without members of its own. */
CV_MUST_USE enum cv_err cv_recruits_create(const struct cv_policy_class *class, const struct cv_spec *spec,
                                           uint64_t seed, struct cv_policy **ret);
void cv_recruits_destroy(struct cv_policy *policy);

#endif
