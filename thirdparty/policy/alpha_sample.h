/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AlphaSample (Cohen, Hazan and Koren, "Online Learning with Feedback Graphs Without the Graphs", 2016, Algorithm 1),
 * the graph bandit without privacy that GAP is compared with.
 *
 * In epoch m, r = 2^-(m+1), each arm in the running is seen ceil(2 ln(1/delta)/r^2) times: in so many passes, each of
 * which plays a uniform choice among the arms in the running that it has not seen yet until it has seen all. Then an
 * arm is dropped when its mean is more than 2 r below the best. Means are those of all tokens.
 *
 * Parameter: delta, as GAP's. Needs mechanism none, towards a trusted third-party or behind randomized response.
 *
 * An epoch of many passes is several plans. A step makes as many passes as take no more than K log K (or 4096) arms and
 * edges, and one at least, which looks at each arm and each edge once: O(K log K + E), E the edges.
 */
#ifndef CV_THIRDPARTY_ALPHA_SAMPLE_H
#define CV_THIRDPARTY_ALPHA_SAMPLE_H

#include "thirdparty/policy/policy.h"

extern const struct cv_policy_class cv_policy_alpha_sample;

#endif
