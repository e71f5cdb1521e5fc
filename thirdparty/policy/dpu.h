/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DPU (Zhao et al. 2020, Algorithm 2): every arm once (lines 4 to 6); then, with t the pulls so far, the index
 *
 *   I = r/z + sqrt(2 ln t/z) + v/z,  v = (sqrt 8/delta) ln(4 t^4) (ln t + 1)   (Definition 4.1, gamma = t^-4; natural
 *                                                                               logarithms; v = 0 for exact releases)
 *
 * fills the rest of the budget greedily by I/c (line 10), and the next arm is drawn with probability in proportion to
 * how often it was taken (line 11). Figure 3 of the paper: costs 2, 4, 5 and B = 200 without noise give densities
 * 1.0412, .5456, .4765 after three pulls and {94, 0, 0}; what it prints after five, {1, 61, 0}, costs 246 of the 185
 * that are left, and rests on a comparison that its own densities (.7013, .6235, .5388) contradict.
 *
 * Parameters:
 *   noise  printed  all N counters share delta: delta = N times the campaign's epsilon, which each arm spends
 *          sound    one arm is seen in a slot: delta = the campaign's epsilon
 *   pulls  arms drawn from one greedy plan, none oftener than that has it; default 1, as the paper has it. More make
 *          fewer plans, each of which third-party and broker store before anybody is asked
 *
 * Behind a privatizer r is taken back to scores and the widths are divided by its slope. A step costs O(N), and at most
 * that again for each further pull.
 */
#ifndef CV_THIRDPARTY_DPU_H
#define CV_THIRDPARTY_DPU_H

#include "thirdparty/policy/policy.h"

extern const struct cv_policy_class cv_policy_dpu;

#endif
