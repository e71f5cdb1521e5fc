/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DPF, epsilon-first (Zhao et al. 2020, Algorithm 1): with the share epsilon of the budget the arms are pulled in turn,
 * the cheapest first (lines 3 to 10; at the first that no longer fits again from the cheapest, until that does not fit
 * either); with the rest always the affordable arm with the largest q/c (lines 12 to 20), q = r/z as it was at the end
 * of that exploration.
 *
 * Parameters:
 *   epsilon  share of the budget to explore with, in (0, 1); default 0.1
 *   noise    printed  a pull is a plan, so the counter of the arm's own pulls gives a release after each. The paper
 *                     lets all N counters tick in every slot and shares delta among them: then the campaign's epsilon,
 *                     which each arm may spend, is delta/N
 *            sound    one plan explores, one spends the rest. One arm is seen in a slot, so arms compose in parallel:
 *                     the campaign's epsilon is delta. With mechanism batch the noise is one Lap(1/delta) an arm
 *
 * What the exploration leaves is spent with the rest (the paper lets it lapse). An arm that was never explored is taken
 * when no explored one can be paid, the cheapest first. A step costs O(N).
 */
#ifndef CV_THIRDPARTY_DPF_H
#define CV_THIRDPARTY_DPF_H

#include "thirdparty/policy/policy.h"

extern const struct cv_policy_class cv_policy_dpf;

#endif
