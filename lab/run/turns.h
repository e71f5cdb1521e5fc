/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run told round by round, for comparing it with another in which one score is another.
 *
 * The plays of a plan are taken in turn: always an arm that has been played least in it so far and has plays left, as
 * Lu, Wang, Qiu and Zhang, "Differentially Private Algorithm for Graphical Bandits" (2022), do it (Algorithm 1, line
 * 14); among equals the one with the smallest number.
 */
#ifndef CV_LAB_TURNS_H
#define CV_LAB_TURNS_H

#include "common/base/neighbours.h"
#include "thirdparty/policy/policy.h"

#define CV_LAB_NOBODY UINT32_MAX

struct cv_lab_turns {
  uint32_t *played; /* in each round, up to the campaign's limit of tokens; CV_LAB_NOBODY behind the end; borrowed */
  uint32_t arm;     /* the score that it shows in `round`, from 0, if it does, ... */
  uint64_t round;
  bool is_zero;     /* ... is 0 instead of what it was */
  uint64_t noise;   /* another number: other noise, all else being equal; usually 0 */
  uint64_t choices; /* the same for what the policy does by chance */
  bool is_shown;    /* came out: a release has that score in it */
};

/* Who is played in the plan's first `rounds` rounds, or in as many as it has. */
void cv_lab_turns_fill(const struct cv_policy_step *step, uint64_t rounds, uint32_t *ret_played);

/*
 * Which of the plan's scores of `arm`, from 0, is shown in the plan's round `round`, where `played` says who is played
 * in each; CV_LAB_NOBODY: none, or the plan does not ask for it. `graph` is NULL where nobody shows another.
 */
uint32_t cv_lab_turns_place(const struct cv_policy_step *step, const struct cv_neighbours *graph,
                            const uint32_t *played, uint64_t round, uint32_t arm);

#endif
