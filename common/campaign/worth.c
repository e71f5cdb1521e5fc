/* SPDX-License-Identifier: Apache-2.0 */
#include "common/campaign/worth.h"

#include <stdbool.h>
#include <stddef.h>

static uint32_t best_within(const struct cv_worth *worth, uint64_t left_micro) {
  uint32_t best = UINT32_MAX;
  double highest = 0;
  for (uint32_t i = 0; i < worth->arms; i++) {
    double value = worth->mean[i] / (worth->cost_micro == NULL ? 1 : (double)worth->cost_micro[i]);
    bool fits = worth->cost_micro == NULL || worth->cost_micro[i] <= left_micro;
    if (fits && (best == UINT32_MAX || value > highest)) {
      best = i;
      highest = value;
    }
  }
  return best;
}

uint32_t cv_worth_best(const struct cv_worth *worth) {
  return best_within(worth, worth->budget_micro);
}

double cv_worth_reward(const struct cv_worth *worth) {
  uint64_t left = worth->budget_micro, tokens = worth->tokens;
  double reward = 0;
  for (uint32_t arm = best_within(worth, left); arm != UINT32_MAX && tokens > 0; arm = best_within(worth, left)) {
    /* The best arm as often as it fits, then the best of those that still fit: what a hindsight with all means would
     * buy. */
    uint64_t times = left / worth->cost_micro[arm];
    times = times < tokens ? times : tokens;
    reward += (double)times * worth->mean[arm];
    left -= times * worth->cost_micro[arm];
    tokens -= times;
  }
  return reward;
}
