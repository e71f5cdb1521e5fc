/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AAE, active arm elimination (Even-Dar, Mannor and Mansour, "Action Elimination and Stopping Conditions for the
 * Multi-Armed Bandit and Reinforcement Learning Problems", 2006, Algorithm 3): what GAP is built on and compared with.
 * It knows neither graph nor privacy. Every arm in the running is played in turn; with n tokens of each an arm is
 * dropped when its mean is more than 2 sqrt(ln(4 K n^2/delta)/n) below the best. Means are those of all tokens.
 *
 * Parameters: delta, as GAP's; tokens_per_round, how often each arm is played between two looks (1, the paper's, by
 * default: each look is a plan, so a larger one is quicker over a network and no less sound).
 *
 * Needs mechanism none, towards a trusted third-party or behind randomized response, and a campaign without a graph.
 */
#ifndef CV_THIRDPARTY_AAE_H
#define CV_THIRDPARTY_AAE_H

#include "thirdparty/policy/policy.h"

extern const struct cv_policy_class cv_policy_aae;

#endif
