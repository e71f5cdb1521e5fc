/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a paper claims of a figure, as far as numbers can judge it:
 *
 *     claims:
 *       - {says: accuracy is at least .98 at every alpha, metric: accuracy, series: as printed, least: .98}
 *       - {says: GAP loses less than DP-SE, metric: regret, series: gap, below: dp-se}
 *       - {says: it is the best of the three, metric: regret, series: klucb-cf, below: [ucb-cf, ts-cf]}
 *       - {says: accuracy rises with epsilon, metric: accuracy, series: as printed, trend: rises}
 *       - {says: ..., reason: why no number of ours can judge it}
 *
 * Every claim has `says` and one of
 *
 *   least: N, most: N         at least, at most this number
 *   equals: N, within: W      from N - W to N + W
 *   below: S, above: S        less, more than another series; with `factor: F` than F times as much
 *   approaches: S, within: W  at most 1 + W times another series
 *   near: S, within: W        from 1 - W to 1 + W times another series
 *   trend: rises, falls       more, less at the last point than at the first, and at no point less, more than at the
 *                             one before
 *   growth: OF                grows with x at most as fast as constant, log-x, sqrt-x, x, x-log-x or x-squared: nowhere
 *                             more than 1 + W (`within`, .1 by default) times what the first point foretells
 *   reason: TEXT              and nothing else: the claim cannot be judged
 *
 * `metric` may be left out where the experiment has only one, `series` where it has only one. `series`, `below` and so
 * on take a name or a list; the name of a series that a grid has multiplied is all of its cells, and compared cell by
 * cell. `at` says at which points of x: a number, a list, first, last or all; `from` and `to` instead of it bound them.
 * Without these it is all points, or of moments of a run the last, but of a trend or a growth all.
 *
 * What is compared with another series, or with another point, is compared replicate by replicate. A comparison holds
 * if the difference is beyond the quantile of Student's distribution that leaves what two standard errors leave of a
 * normal one, .023, and fails if it is as far on the other side; what lies between cannot be judged at so many
 * replicates. A claim of several comparisons holds if each of them holds, which needs no correction, and does not hold
 * if one fails, for which .023 is divided by how many there are (Bonferroni), so that no claim falls by the chance of
 * having many points. Where all replicates are alike the difference itself decides, unless it is 0 where more or less
 * is claimed. One replicate decides nothing, nor do fewer than 100 of a root mean square.
 */
#ifndef CV_LAB_CLAIM_H
#define CV_LAB_CLAIM_H

#include "lab/dataset.h"

enum cv_lab_verdict { CV_LAB_HOLDS, CV_LAB_FAILS, CV_LAB_UNDECIDED };
/* "holds", "does not hold", "cannot be judged". */
const char *cv_lab_verdict_text(enum cv_lab_verdict verdict);

struct cv_lab_claim {
  const char *says; /* the experiment's */
  enum cv_lab_verdict verdict;
  char reason[400]; /* the numbers that decided: which point, what was found, what was expected */
};

/* How many claims the experiment makes. */
size_t cv_lab_claims(const struct cv_lab_experiment *experiment);
/* All of them are well-formed and name series, metrics and points that are there. One line with line and column. */
CV_MUST_USE enum cv_err cv_lab_claims_check(const struct cv_lab_experiment *experiment, struct cv_why *why);
/* They have been checked. */
void cv_lab_claim_judge(const struct cv_lab_dataset *dataset, size_t index, struct cv_lab_claim *ret);
/* Of an experiment that was not run, for this reason: it cannot be judged. */
void cv_lab_claim_open(const struct cv_lab_experiment *experiment, size_t index, const char *reason,
                       struct cv_lab_claim *ret);

#endif
