/* SPDX-License-Identifier: Apache-2.0 */
/* What could be had from arms whose true means are known: what regret is measured against. */
#ifndef CV_LAUNCHER_WORTH_H
#define CV_LAUNCHER_WORTH_H

#include <stdint.h>

struct cv_worth {
  uint32_t arms;
  const double *mean;         /* of each arm's scores */
  const uint64_t *cost_micro; /* of a token of each arm; NULL: nobody is paid */
  uint64_t budget_micro;      /* with costs */
  uint64_t tokens;            /* no more than these may be collected */
};

/* The arm with the highest mean, or of those that the budget buys the one with the highest mean for its price; of equal
 * ones the first. UINT32_MAX if there is none. */
uint32_t cv_worth_best(const struct cv_worth *worth);
/* With costs: what the whole budget brings on average when the densest arm that still fits is hired each time. */
double cv_worth_reward(const struct cv_worth *worth);

#endif
