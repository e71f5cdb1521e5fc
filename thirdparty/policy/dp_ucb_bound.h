/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DP-UCB-Bound (Tossou and Dimitrakakis, "Algorithms for Differentially Private Multi-Armed Bandits", 2016), with costs
 * charged as Zhao et al. (2020, section 5.1) do: it pulls the affordable arm with the highest index, whatever it costs.
 * Every arm once; then, with t the pulls so far and L = 4 sqrt 8 ln t (log2 z + 1)/(delta z),
 *
 * Parameters:
 *   index  printed    r/z + L, as Zhao et al. print it
 *          published  r/z + sqrt(2 ln t/z) + L, as Tossou and Dimitrakakis have it; the default
 *   noise  printed, sound: what delta is, see dpu.h
 *
 * L = 0 for exact releases. A step costs O(N).
 */
#ifndef CV_THIRDPARTY_DP_UCB_BOUND_H
#define CV_THIRDPARTY_DP_UCB_BOUND_H

#include "thirdparty/policy/policy.h"

extern const struct cv_policy_class cv_policy_dp_ucb_bound;

#endif
