/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scores that a play shows, from the seed's feedback graph: of the arm that is played and of those of its
 * neighbours that the plan names. It does not use the product's code. Without a graph an arm shows itself.
 */
#ifndef CV_SIM_SHOWS_H
#define CV_SIM_SHOWS_H

#include "common/base/result.h"
#include "tests/sim/scenario.h"

/* NULL if the plan does not name the arm. */
const struct cv_want *shows_want(const struct cv_plan *plan, uint32_t arm);
/* Whether a play of `played` shows `arm`: the plan must name both. */
bool shows_arm(const struct scenario *scenario, uint32_t played, uint32_t arm);
/* The arms that one play shows: the played arm, then the others in ascending order. Returns their number. */
uint32_t shows_list(const struct scenario *scenario, const struct cv_plan *plan, uint32_t played,
                    uint32_t list[SCENARIO_ARMS]);
/* How often the plan shows an arm that it names. */
uint64_t shows_tokens(const struct scenario *scenario, const struct cv_plan *plan, uint32_t arm);
/* The sum of the scores of the arm that the plan shows; `first`: each arm's plays in the plans before. */
int64_t shows_sum(const struct scenario *scenario, const struct cv_plan *plan, const uint64_t first[SCENARIO_ARMS],
                  uint32_t arm);
/* Each arm's plays in the first `n` plans. */
void shows_plays(const struct cv_plan *plan, size_t n, uint64_t ret_plays[SCENARIO_ARMS]);

#endif
