/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a paper claims of a figure, as far as numbers can judge it:
 *
 *     claims:
 *       - {says: accuracy is at least .98 at every alpha, metric: accuracy, series: as printed, least: .98}
 *       - {says: GAP loses less than DP-SE, metric: regret, series: gap, below: dp-se, factor: 1}
 *       - {says: accuracy rises with epsilon, metric: accuracy, series: as printed, trend: rises}   # or falls
 *       - {says: time grows as K ln K, metric: seconds, series: as printed, growth: x-log-x}        # or x
 *       - {says: ..., reason: why no number of ours can judge it}
 *
 * `least`, `most` compare with a number, `below` (or `above`) with another series, replicate by replicate; `at` restricts
 * to points of x (a list; default: all; `last`: the last). `approaches: SERIES, within: .1` is `below` at (1 + within)
 * times the other. `verdict` is what comes out of it: beyond two standard errors the claim holds or does not; what lies
 * between cannot be judged at so many replicates. A claim over several points holds if it holds at each, and does not
 * hold if it fails at one.
 */
#ifndef CV_LAB_CLAIM_H
#define CV_LAB_CLAIM_H

#include "lab/dataset.h"

enum cv_lab_verdict { CV_LAB_HOLDS, CV_LAB_FAILS, CV_LAB_UNDECIDED };

struct cv_lab_claim {
  const char *says;
  enum cv_lab_verdict verdict;
  char reason[240]; /* the numbers that decided: which point, what was found, what was expected */
};

/* How many claims the experiment makes. */
size_t cv_lab_claims(const struct cv_lab_experiment *experiment);
/* All of them are well-formed and name series, metrics and points that are there. One line with line and column. */
CV_MUST_USE enum cv_err cv_lab_claims_check(const struct cv_lab_experiment *experiment, struct cv_why *why);
void cv_lab_claim_judge(const struct cv_lab_dataset *dataset, size_t index, struct cv_lab_claim *ret);

#endif
