/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of the bandit policies: pulls and sums of each arm, the end of the campaign, and the choice of an arm.
 * The policies use exact prefix sums (mechanism `none`, with a trusted third-party or over privatized tokens). A
 * release has the total of an arm; the new part is its difference to the previous release.
 */
#ifndef CV_THIRDPARTY_ARMS_H
#define CV_THIRDPARTY_ARMS_H

#include "common/base/local.h"
#include "common/base/rng.h"
#include "thirdparty/policy/policy.h"

struct cv_arms_sum {
  uint64_t tokens; /* N_a */
  int64_t sum;     /* of the tokens, in grid units */
  struct cv_feedback feedback;
};

struct cv_arms {
  uint32_t arms;       /* K */
  uint64_t pulls;      /* t: tokens of all arms */
  uint32_t floor;      /* of tokens in a want */
  uint64_t horizon;    /* T: pulls after which the policy is done */
  uint64_t stream;     /* the policy's random path; each plan has a branch */
  struct cv_local law; /* law of the workers' privatizer */
  struct cv_arms_sum *arm;
};

/* The parameter of every bandit; 0: the campaign's limit of tokens. */
#define CV_PULLS_RULE                                                       \
  {                                                                         \
    .key = "horizon", .low = 0, .high = 1e12, .whole = true, .fallback = 0, \
    .help = "how many tokens the game has; 0: limits.tokens"                \
  }

/* CV_ERR_INVALID for an unknown privatizer, or CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_arms_init(const struct cv_spec *spec, uint64_t seed, struct cv_arms *ret);
void cv_arms_fini(struct cv_arms *arms);

/* Takes in a release. Returns the number of new tokens of its arm, and sets *ret_sum to their sum in scores. Both are 0
 * if the broker's count does not grow. */
uint64_t cv_arms_apply(struct cv_arms *arms, const struct cv_release *release, double *ret_sum);
/* The mean token of a pulled arm, in scores. Clipped to [0,1] unless the privatizer is laplace; the sums of an honest
 * broker are in that range anyway. */
double cv_arms_mean(const struct cv_arms *arms, uint32_t arm);
/* The number of pulls left until the horizon; 0 if they are fewer than a plan may ask for. */
uint64_t cv_arms_left(const struct cv_arms *arms);
/* Sets the mean score and Hoeffding's 95 % half-width for a single test (plus the tail of a privatizer's noise); no
 * classes. */
void cv_arms_standing(const struct cv_arms *arms, uint32_t i, struct cv_standing *ret);

/* Tokens and sum of every arm. */
void cv_arms_save(const struct cv_arms *arms, struct cv_buf *out);
/* CV_ERR_DAMAGED if the state is invalid or has another number of arms. */
CV_MUST_USE enum cv_err cv_arms_load(struct cv_arms *arms, struct cv_reader *in);

/* Sets *ret to the random stream of a plan. */
void cv_arms_stream(const struct cv_arms *arms, uint64_t plan, struct cv_rng_seeded *ret);
/* Adds a want for `tokens` pulls of an arm, at most as many as are left; the step must have room. */
void cv_arms_want(const struct cv_arms *arms, uint32_t arm, uint32_t tokens, struct cv_policy_step *step);

/* The arm with the highest value; ties are broken uniformly. Starts zeroed. */
struct cv_highest {
  double value;
  uint32_t arm, ties;
};

static inline void cv_highest_offer(struct cv_highest *highest, uint32_t arm, double value, struct cv_rng *rng) {
  if (highest->ties == 0 || value > highest->value) {
    *highest = (struct cv_highest){.value = value, .arm = arm, .ties = 1};
  } else if (value == highest->value && cv_rng_below(rng, ++highest->ties) == 0) {
    highest->arm = arm;
  }
}

/* CV_ERR_INVALID unless the campaign has mechanism `none` and one of these privatizers (bits 1 << enum cv_local_kind).
 */
CV_MUST_USE enum cv_err cv_arms_fit(const struct cv_spec *spec, unsigned privatizers, struct cv_why *why);

#endif
