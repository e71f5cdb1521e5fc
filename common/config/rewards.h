/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in campaign files for simulated rewards: the laws of an arm's scores, and adversaries. worker/quality/<file>.c
 * implements each row.
 */
#ifndef CV_CONFIG_REWARDS_H
#define CV_CONFIG_REWARDS_H

/* ROW(file, enumerator, word, usual spread, whether the spread may be 0) */
#define CV_REWARD_LAWS(ROW)                                 \
  ROW(bernoulli, BERNOULLI, "bernoulli", 0, true)           \
  ROW(beta, BETA, "beta", 10, false)                        \
  ROW(clipped, CLIPPED_NORMAL, "clipped-normal", 0.1, true) \
  ROW(truncated, TRUNCATED_NORMAL, "truncated-normal", 0.1, false)

/* ROW(file, word) */
#define CV_ADVERSARIES(ROW)               \
  ROW(deterministic, "deterministic")     \
  ROW(stochastic, "stochastic")           \
  ROW(fully_oblivious, "fully-oblivious") \
  ROW(oblivious, "oblivious")             \
  ROW(switching, "switching")

/* The word for comparisons of two items, where a law may stand. */
#define CV_REWARDS_PAIRS_WORD "pairs"

/* CV_REWARDS_BERNOULLI, ... */
#define CV_REWARDS_KIND(file, kind, ...) CV_REWARDS_##kind,
enum cv_rewards {
  CV_REWARD_LAWS(CV_REWARDS_KIND) CV_REWARDS_KINDS,
  CV_REWARDS_PAIRS = CV_REWARDS_KINDS /* no law of one item: two are compared, the means are their strengths */
};
#undef CV_REWARDS_KIND

#endif
