/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers with costs and a budget: what all policies of kind CV_POLICY_RECRUITMENT know and do. Arms are workers; each
 * token of an arm is paid with the arm's cost. What was spent follows from what was released, so it cannot drift from
 * what the broker paid: every plan is released before the next one is made.
 *
 * Notation of Zhao et al., "Differentially Private Unknown Worker Recruitment for Mobile Crowdsensing Using Multi-Armed
 * Bandits" (2020): N arms, costs c, budget B, pulls z, noisy sums r; its privacy level delta is the campaign's epsilon.
 */
#ifndef CV_THIRDPARTY_RECRUITS_H
#define CV_THIRDPARTY_RECRUITS_H

#include "common/base/local.h"
#include "common/base/rng.h"
#include "thirdparty/policy/policy.h"

struct cv_recruit {
  uint64_t cost_micro;
  double cost;    /* the same in units of money */
  double slope;   /* of what a privatizer does to the mean, > 0 */
  uint64_t pulls; /* tokens paid for */
  int64_t sum;    /* of them, noisy, grid units */
  double mean;    /* of the scores behind them; 0 without pulls */
  double radius;  /* of the mean, at 95 % */
};

/* The head of every recruitment policy. Nothing is allocated after _init. */
struct cv_recruits {
  struct cv_policy policy;
  uint64_t seed, budget_micro;
  uint64_t epsilon_micro; /* 0: releases are exact */
  double delta;           /* the paper's, for those whose index needs it: see cv_recruits_delta() */
  bool is_fresh;          /* a release sums the tokens of its own plan only (mechanism batch) */
  struct cv_local local;
  uint32_t arms;
  uint32_t strangers;  /* arms without a pull */
  uint64_t pulls;      /* of all arms: the paper's t - 1 */
  uint64_t left_micro; /* of the budget */
  uint64_t tokens;     /* the campaign's limit: as many requests as there are */
  uint64_t room;       /* of them, for the step that is being made */
  struct cv_recruit *arm;
  uint32_t *by_cost; /* arms, the cheapest first; of equal costs the lower number first */
  /* What cv_recruits_fill() leaves: `picks` arms and how often each was taken, in the order in which they were. */
  uint32_t picks;
  uint32_t *pick;
  uint64_t *times;
  uint32_t *densest; /* scratch of cv_recruits_fill() */
  /* Room for a policy's own: its value of each arm per unit of money. */
  double *density;
};

/* `self` is all zero. On failure nothing is left to free. */
CV_MUST_USE enum cv_err cv_recruits_init(struct cv_recruits *self, const struct cv_policy_class *class,
                                         const struct cv_spec *spec, uint64_t seed);

/* Whom they take in `fits`: releases whose tokens are those of the plan (batch) or all of the arm's so far. */
CV_MUST_USE enum cv_err cv_recruits_fits(const struct cv_spec *spec, struct cv_why *why);
/* Of those whose index bounds the noise of the hybrid mechanism on tokens in [0, 1]: hybrid, or exact releases. */
CV_MUST_USE enum cv_err cv_recruits_fits_index(const struct cv_spec *spec, struct cv_why *why);

/* The paper's delta: the campaign's epsilon, or N times that where its N counters are printed to share delta. */
double cv_recruits_delta(const struct cv_recruits *self, bool printed);

/*
 * The greedy knapsack (Tran-Thanh et al. 2010): the densest arm that `micro` still buys is taken as often as it fits,
 * then the next, until nothing fits. Arms whose density is NAN are left out; of equal densities the first of by_cost is
 * taken. Fills picks, pick and times; O(N), since what is left after an arm buys cheaper ones only. What
 * is left is less than half each time, so there are at most log2(micro) picks.
 */
void cv_recruits_fill(struct cv_recruits *self, const double *density, uint64_t micro);

/* The affordable arm with the highest value (NAN: left out); of equal ones the first of by_cost. There is one. */
uint32_t cv_recruits_best(const struct cv_recruits *self, const double *value);
/* An affordable arm at random. There is one. */
uint32_t cv_recruits_any(const struct cv_recruits *self, struct cv_rng *rng);

/* The stream of this plan. */
void cv_recruits_stream(const struct cv_recruits *self, uint64_t plan, struct cv_rng_seeded *ret);

/* Steps. They return CV_OK or CV_ERR_NOMEM. */

/* Room for every want there can be; done if the money buys nothing any more, or the limit of tokens is reached ("the
 * algorithms terminate when the budget runs out or all requests are handled", section 5.1). To be called first in every
 * step. */
CV_MUST_USE enum cv_err cv_recruits_step(struct cv_recruits *self, struct cv_policy_step *step);
/* `times` tokens of an arm, or as many as a want can hold, and as the limit leaves. */
void cv_recruits_want(struct cv_recruits *self, struct cv_policy_step *step, uint32_t arm, uint64_t times);
/* `n` of the picks (or all, if there are fewer), each with probability in proportion to the times that are left of it;
 * from the stream of this plan. picks > 0; uses up `times`. */
void cv_recruits_want_drawn(struct cv_recruits *self, uint64_t plan, uint64_t n, struct cv_policy_step *step);
/* All the picks. */
void cv_recruits_want_picks(struct cv_recruits *self, struct cv_policy_step *step);
/* Algorithm 2, lines 4 to 6: a token of every arm that has none yet, as far as the money goes, in order of number.
 * False if there is none such that could be paid. */
bool cv_recruits_want_first(struct cv_recruits *self, struct cv_policy_step *step);

/* Members of a class. A policy with state of its own calls save and load before it writes or reads that. */
void cv_recruits_apply(struct cv_policy *policy, const struct cv_release *release);
void cv_recruits_standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret);
void cv_recruits_save(const struct cv_policy *policy, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_recruits_load(struct cv_policy *policy, struct cv_reader *in);
/* The same for a policy without more state: nothing may follow. */
CV_MUST_USE enum cv_err cv_recruits_load_all(struct cv_policy *policy, struct cv_reader *in);
/* For a policy that is no more than this head. */
CV_MUST_USE enum cv_err cv_recruits_create(const struct cv_policy_class *class, const struct cv_spec *spec,
                                           uint64_t seed, struct cv_policy **ret);
void cv_recruits_destroy(struct cv_policy *policy);

#endif
