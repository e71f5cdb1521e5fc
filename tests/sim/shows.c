/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/shows.h"

#include <string.h>

#include "tests/sim/world.h"

const struct cv_want *shows_want(const struct cv_plan *plan, uint32_t arm) {
  for (uint32_t i = 0; i < plan->wants; i++) {
    if (plan->want[i].arm == arm) {
      return &plan->want[i];
    }
  }
  return NULL;
}

bool shows_arm(const struct scenario *scenario, uint32_t played, uint32_t arm) {
  return played == arm || scenario->joined[played][arm];
}

uint32_t shows_list(const struct scenario *scenario, const struct cv_plan *plan, uint32_t played,
                    uint32_t list[SCENARIO_ARMS]) {
  uint32_t n = 0;
  list[n++] = played;
  for (uint32_t arm = 0; arm < scenario->arms; arm++) {
    if (arm != played && shows_arm(scenario, played, arm) && shows_want(plan, arm) != NULL) {
      list[n++] = arm;
    }
  }
  return n;
}

uint64_t shows_tokens(const struct scenario *scenario, const struct cv_plan *plan, uint32_t arm) {
  uint64_t tokens = 0;
  for (uint32_t i = 0; i < plan->wants; i++) {
    tokens += shows_arm(scenario, plan->want[i].arm, arm) ? plan->want[i].tokens : 0;
  }
  return tokens;
}

int64_t shows_sum(const struct scenario *scenario, const struct cv_plan *plan, const uint64_t first[SCENARIO_ARMS],
                  uint32_t arm) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < plan->wants; i++) {
    const struct cv_want *want = &plan->want[i];
    for (uint32_t j = 0; shows_arm(scenario, want->arm, arm) && j < want->tokens; j++) {
      sum += world_shown(scenario, want->arm, first[want->arm] + j, arm);
    }
  }
  return sum;
}

void shows_plays(const struct cv_plan *plan, size_t n, uint64_t ret_plays[SCENARIO_ARMS]) {
  memset(ret_plays, 0, SCENARIO_ARMS * sizeof(*ret_plays));
  for (size_t i = 0; i < n; i++) {
    for (uint32_t j = 0; j < plan[i].wants; j++) {
      ret_plays[plan[i].want[j].arm] += plan[i].want[j].tokens;
    }
  }
}
