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
 * Here it is read: which numbers are to be compared with which.
 */
#ifndef CV_LAB_TERMS_H
#define CV_LAB_TERMS_H

#include "lab/experiment/experiment.h"

enum { CV_LAB_PAIRS_MAX = 256 };

enum cv_lab_relation {
  CV_LAB_LEAST,
  CV_LAB_MOST,
  CV_LAB_EQUALS,
  CV_LAB_BELOW,
  CV_LAB_ABOVE,
  CV_LAB_APPROACHES,
  CV_LAB_NEAR,
  CV_LAB_TREND,
  CV_LAB_GROWTH,
  CV_LAB_REASON,
};

struct cv_lab_terms {
  const char *says, *reason; /* the file's; reason only of CV_LAB_REASON */
  enum cv_lab_relation relation;
  size_t metric;
  size_t pairs; /* series and what they are compared with: themselves, where it is no other series */
  struct cv_lab_pair {
    size_t one, other;
  } pair[CV_LAB_PAIRS_MAX];
  double number, within, factor;
  bool rises;
  double (*growth)(double x);
  size_t points; /* in the order of x */
  size_t point[CV_LAB_POINTS_MAX];
};

/* How many claims the experiment makes. */
size_t cv_lab_claims(const struct cv_lab_experiment *experiment);
/* All of them are well-formed and name series, metrics and points that are there. One line with line and column. */
CV_MUST_USE enum cv_err cv_lab_claims_check(const struct cv_lab_experiment *experiment, struct cv_why *why);
/* Those of one claim. One line with line and column. */
CV_MUST_USE enum cv_err cv_lab_terms_read(const struct cv_lab_experiment *experiment, size_t claim,
                                          struct cv_lab_terms *ret, struct cv_why *why);

#endif
