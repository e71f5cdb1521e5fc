/* SPDX-License-Identifier: Apache-2.0 */
/* What a campaign came to whose policy is no ranking: who was pulled or hired how often, what that brought and cost. */
#ifndef CV_LAUNCHER_PULLS_H
#define CV_LAUNCHER_PULLS_H

#include <jansson.h>

#include "deploy/launcher/outcome.h"

/*
 * By the true means: the sum of the rewards that the pulls bring on average, and what they lose against pulling the
 * best arm each time; of a recruitment, against spending the budget on the densest arm as far as whole tokens go, then
 * on the next. NAN without a truth. Against an
 * adversary (with hindsight) true gains take the place of means, and the best arm is the one of these rounds.
 */
struct cv_pulls_sums {
  uint64_t pulls, spent_micro; /* spent: 0 where nobody is paid */
  double reward, regret;
  uint32_t best; /* the arm with the highest true mean (recruitment: the densest); UINT32_MAX without a truth */
};
struct cv_pulls_sums cv_pulls_sums(const struct cv_outcome *outcome);

/* A table of arms and their sums, for a person. */
void cv_pulls_print(const struct cv_outcome *outcome, FILE *to);
/*
 * One object: campaign, policy, arms (name, pulls, mean, truth or null, active with a graph, cost and paid where arms
 * are paid), pulls, reward, regret (both or null), spent and budget where arms are paid, tokens, rounds,
 * epsilon_spent_micro, seconds, tokens_per_second. NULL when out of memory.
 */
json_t *cv_pulls_json(const struct cv_outcome *outcome, const char *policy);

#endif
