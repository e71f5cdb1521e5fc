/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `policy: auto` and `mechanism: auto` choose among. Internal to simulate.
 *
 * The goal follows from the campaign file:
 *   workers                     hire for the most reward
 *   graph                       least regret on the graph
 *   items.adversary             least regret against any gains
 *   policy.alpha                the classes of the items, from few tokens
 *   policy.delta without alpha  the best item, from few tokens
 *   otherwise                   least regret
 * or, if only the mechanism is to be chosen, from the policy. Candidates are the policies for that goal, for classes
 * and the best item only those with a proof of their probability of an error, with what it needs; each under every
 * mechanism that is private for any number of releases or up to its horizon; without an epsilon only under `none`,
 * behind a privatizer.
 */
#ifndef CV_SIMULATE_CANDIDATES_H
#define CV_SIMULATE_CANDIDATES_H

#include "common/campaign/campaign.h"

enum cv_goal { CV_GOAL_HIRES, CV_GOAL_GRAPH, CV_GOAL_GAINS, CV_GOAL_CLASSES, CV_GOAL_BEST, CV_GOAL_REGRET, CV_GOALS };

struct cv_candidate {
  struct cv_choice policy; /* checked, with all its parameters */
  struct cv_choice mechanism;
};

enum { CV_CANDIDATES_MAX = 160 };

struct cv_candidates {
  enum cv_goal goal;
  uint32_t count;
  struct cv_candidate candidate[CV_CANDIDATES_MAX];
};

/*
 * All pairs that the campaign's spec, complete but for policy and mechanism, can have. CV_ERR_INVALID with one line if
 * `policy` has parameters that auto does not take, or if there is no pair, with the last reason.
 */
CV_MUST_USE enum cv_err cv_candidates_list(const struct cv_campaign_file *campaign, struct cv_candidates *ret,
                                           struct cv_why *why);
/* The policy's parameters that a campaign file has to name for this candidate: what auto was given, and what the
 * candidate's proof needs. */
struct cv_choice cv_candidate_named(const struct cv_campaign_file *campaign, const struct cv_candidate *candidate);

#endif
