/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arms of a run round by round, for comparison with a run in which one score differs.
 *
 * The order of a plan's plays: always an arm with plays left that has been played least in this plan, as in Lu, Wang,
 * Qiu and Zhang, "Differentially Private Algorithm for Graphical Bandits" (2022), Algorithm 1, line 14; among equals
 * the one with the smallest number.
 */
#ifndef CV_SIMULATE_TURNS_H
#define CV_SIMULATE_TURNS_H

#include "common/base/neighbours.h"
#include "thirdparty/policy/policy.h"

#define CV_TURNS_NO_ARM UINT32_MAX

struct cv_turns {
  uint32_t *played; /* the arm of each round, up to the limit of tokens; CV_TURNS_NO_ARM past the end; borrowed */
  uint32_t arm;     /* with `round`: selects the score that this arm shows in that round, if any */
  uint64_t round;   /* from 0 */
  bool is_zero;     /* replace the selected score by 0 */
  uint64_t noise;   /* selects the mechanism's noise: another number gives other noise, all else equal; usually 0 */
  uint64_t choices; /* the same for the policy's random choices */
  bool is_shown;    /* result: a release includes the selected score */
};

/* Sets the arms of the plan's first `rounds` rounds, or of all its rounds if it has fewer. */
void cv_turns_fill(const struct cv_policy_step *step, uint64_t rounds, uint32_t *ret_played);

/*
 * The index, from 0, among the plan's scores of `arm` of the one shown in the plan's round `round`; `played` has the
 * arm of each round. CV_TURNS_NO_ARM if that round shows no such score, or the plan does not ask for the arm. `graph`
 * is NULL without edges.
 */
uint32_t cv_turns_place(const struct cv_policy_step *step, const struct cv_neighbours *graph, const uint32_t *played,
                        uint64_t round, uint32_t arm);

#endif
