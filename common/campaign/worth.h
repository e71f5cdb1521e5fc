/* SPDX-License-Identifier: Apache-2.0 */
/* The best attainable reward from arms with known true means: the reference for regret. */
#ifndef CV_CAMPAIGN_WORTH_H
#define CV_CAMPAIGN_WORTH_H

#include <stdint.h>

struct cv_worth {
  uint32_t arms;
  const double *mean;         /* of each arm's scores */
  const uint64_t *cost_micro; /* cost of a token of each arm; NULL: no recruitment */
  uint64_t budget_micro;      /* with costs */
  uint64_t tokens;            /* largest number of tokens */
};

/* The arm with the highest mean; with costs, the affordable arm with the highest mean per cost. The first of equal
 * arms. UINT32_MAX if there is none. */
uint32_t cv_worth_best(const struct cv_worth *worth);
/* With costs: the mean total reward when the budget is spent on the affordable arm with the highest mean per cost,
 * repeatedly. */
double cv_worth_reward(const struct cv_worth *worth);

#endif
