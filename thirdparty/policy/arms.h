/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the bandits share: how often each arm was pulled and what that gave, when the campaign is over, and the choice
 * of an arm. They work on exact prefix sums (mechanism `none`: towards a trusted third-party, or of what a privatizer
 * has let through), so a release tells the total of an arm and its difference to the last one is what is new.
 */
#ifndef CV_THIRDPARTY_ARMS_H
#define CV_THIRDPARTY_ARMS_H

#include "common/base/local.h"
#include "common/base/rng.h"
#include "thirdparty/policy/policy.h"

struct cv_arm_sum {
  uint64_t tokens; /* N_a */
  int64_t sum;     /* of the tokens, in grid units */
  struct cv_feedback feedback;
};

struct cv_arms {
  uint32_t arms;       /* K */
  uint64_t pulls;      /* t: tokens of all arms */
  uint64_t horizon;    /* T: pulls after which the policy is done */
  uint64_t stream;     /* the policy's, of which each plan has a branch */
  struct cv_local law; /* what the workers do to a score */
  struct cv_arm_sum *arm;
};

/* The parameter of every bandit; 0: the campaign's limit of tokens. */
#define CV_PULLS_RULE \
  { .key = "horizon", .low = 0, .high = 1e12, .whole = true, .fallback = 0 }

/* CV_ERR_INVALID: a privatizer that is not known; CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_arms_init(const struct cv_spec *spec, uint64_t seed, struct cv_arms *ret);
void cv_arms_fini(struct cv_arms *arms);

/* Takes a release in. Returns how many tokens are new, of the release's arm, and their sum in scores: whatever a broker
 * sends, a count that does not grow is no news. */
uint64_t cv_arms_apply(struct cv_arms *arms, const struct cv_release *release, double *ret_sum);
/* The mean token of an arm that has been pulled, in scores; with `law` anything but laplace it is made to lie in
 * [0,1], where an honest broker's always does. */
double cv_arms_mean(const struct cv_arms *arms, uint32_t arm);
/* How many pulls are left. */
uint64_t cv_arms_left(const struct cv_arms *arms);
/* Mean score and the half-width that Hoeffding gives at 95 % for one look (with the tail of a privatizer's noise); no
 * classes. */
void cv_arms_standing(const struct cv_arms *arms, uint32_t i, struct cv_standing *ret);

/* Tokens and sum of every arm. */
void cv_arms_save(const struct cv_arms *arms, struct cv_buf *out);
/* CV_ERR_DAMAGED if it is not that of as many arms. */
CV_MUST_USE enum cv_err cv_arms_load(struct cv_arms *arms, struct cv_reader *in);

/* The stream of a plan. */
void cv_arms_stream(const struct cv_arms *arms, uint64_t plan, struct cv_rng_seeded *ret);
/* Names `tokens` pulls of an arm, or as many as are left; the step has room. */
void cv_arms_want(const struct cv_arms *arms, uint32_t arm, uint32_t tokens, struct cv_policy_step *step);

/* The arm of the highest value, all of those that tie with equal probability. Starts as all zero. */
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
