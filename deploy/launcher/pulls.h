/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a policy that is not a ranking: how often each arm was pulled or hired, reward, regret and cost. */
#ifndef CV_LAUNCHER_PULLS_H
#define CV_LAUNCHER_PULLS_H

#include <jansson.h>

#include "deploy/launcher/outcome.h"

/*
 * Reward: the sum of the true means of all pulls. Regret: the difference to pulling the best arm each time or, in a
 * recruitment, to spending the budget in whole tokens on the arm with the highest mean per cost, then on the next. NAN
 * if the truth is unknown. Against an adversary (with hindsight) both use the true gains, and the best arm is the best
 * one of these rounds.
 */
struct cv_pulls_sums {
  uint64_t pulls, spent_micro; /* spent: 0 if workers are not paid */
  double reward, regret;
  uint32_t best; /* arm with the highest true mean (recruitment: mean per cost); UINT32_MAX if the truth is unknown */
};
struct cv_pulls_sums cv_pulls_sums(const struct cv_outcome *outcome);

/* Prints a table of the arms, then the sums. */
void cv_pulls_print(const struct cv_outcome *outcome, FILE *to);
/*
 * One object: campaign, policy, arms (name, pulls, mean, truth or null, active with a graph, cost and paid if workers
 * are paid), pulls, reward, regret (both or null), spent and budget if workers are paid, tokens, rounds,
 * epsilon_spent_micro, seconds, tokens_per_second. NULL when out of memory. The caller owns it.
 */
json_t *cv_pulls_json(const struct cv_outcome *outcome, const char *policy);

#endif
