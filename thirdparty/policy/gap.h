/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GAP, graph-based arm elimination with differential privacy (Lu, Wang, Qiu and Zhang 2022, Algorithm 1), and GAPU,
 * their variant with an independent set that does not look at the means.
 *
 * A phase takes an independent set of the graph of the arms in the running, none of which could be added: GAP's takes
 * the arm of the highest noisy mean that is left each time (lines 26 to 32; in the first phase, and among equals, by
 * chance), GAPU's any arm that is left. Each arm of the set is played `plays` times (phases.h), which shows every arm
 * in the running at least so often, and an arm is dropped when its mean is more than two radii below the best (line
 * 23). Means are those of the phase alone. A phase that no longer fits the token limit is refused by the broker and
 * ends the campaign: nothing of it is asked or released.
 *
 * Parameters:
 *   delta             error probability, below 1; 0, the default, stands for one over the token limit (the paper's)
 *   noise    sound    the mean of an arm that was shown o times has Laplace noise of scale 1/(epsilon o): what the
 *                     mechanism gives
 *            printed  1/(epsilon plays), o >= plays, as line 21 has it: what is missing is added here, from the
 *                     policy's own randomness. A Laplace noise of scale a, and with probability 1 - (a/b)^2 one of
 *                     scale b more, are one of scale b. It protects nobody better: the release has left the broker.
 *
 * Needs mechanism batch. A step costs O(K log K) and the edges.
 */
#ifndef CV_THIRDPARTY_GAP_H
#define CV_THIRDPARTY_GAP_H

#include "thirdparty/policy/policy.h"

extern const struct cv_policy_class cv_policy_gap, cv_policy_gapu;

#endif
