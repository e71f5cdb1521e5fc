/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DP-SE, private successive elimination (Sajed and Sheffet 2019, Algorithm 2): what GAP is compared with. It knows no
 * graph. In each epoch every arm in the running is played
 *
 *     max{32 ln(8 n e^2/delta)/D^2, 8 ln(4 n e^2/delta)/(epsilon D)} + 1 times, D = 2^-e,
 *
 * and dropped when its noisy mean is more than two radii below the best, with the terms of phases.h. Means are those of
 * the epoch alone.
 *
 * Parameter: delta, as GAP's. Needs mechanism batch and a campaign without a graph.
 */
#ifndef CV_THIRDPARTY_DP_SE_H
#define CV_THIRDPARTY_DP_SE_H

#include "thirdparty/policy/policy.h"

extern const struct cv_policy_class cv_policy_dp_se;

#endif
