/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epsilon_t-greedy (Auer, Cesa-Bianchi and Fischer 2002) on noisy means, with costs charged as Zhao et al. (2020,
 * section 5.1) do: in slot t, with probability epsilon_t = min{1, 5N/(t d^2)} an affordable arm at random, else the
 * affordable arm with the highest r/z, whatever it costs. Every arm once before that.
 *
 * Parameters:
 *   gap  d, in [0, 1]. Auer et al. mean a lower bound of the distance between the best arm and the next; Zhao et al.
 *        take the mean of the densest arm (q/c) minus that of the least dense. 0, the default: the latter, by the noisy
 *        means as they are, kept within [0, 1]
 *
 * A step costs O(N).
 */
#ifndef CV_THIRDPARTY_EPS_GREEDY_H
#define CV_THIRDPARTY_EPS_GREEDY_H

#include "thirdparty/policy/policy.h"

extern const struct cv_policy_class cv_policy_eps_greedy;

#endif
