/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claims about an experiment, of a paper or our own, as far as numbers can judge them:
 *
 *     claims:
 *       - {says: accuracy is at least .98 at every alpha, metric: accuracy, series: as printed, least: .98}
 *       - {says: GAP loses less than DP-SE, metric: regret, series: gap, below: dp-se}
 *       - {says: it is the best of the three, metric: regret, series: klucb-cf, below: [ucb-cf, ts-cf]}
 *       - {says: accuracy rises with epsilon, metric: accuracy, series: as printed, trend: rises}
 *       - {says: ..., quote: "Figure 4 shows that ...", where: figure 4, below: dp-se, smallest: 2%}
 *       - {says: ..., by: us, least: .9}
 *       - {says: ..., reason: why no metric can decide it}
 *
 * Every claim has `says` and one of
 *
 *   least: N, most: N         at least, at most N
 *   equals: N, within: W      from N - W to N + W
 *   below: S, above: S        less, more than series S; with `factor: F`, than F times S
 *   approaches: S, within: W  at most 1 + W times series S
 *   near: S, within: W        from 1 - W to 1 + W times series S
 *   trend: rises, falls       more, less at the last point than at the first, and at no point clearly less, more than
 *                             at the previous one
 *   growth: OF                grows with x at most as fast as OF (constant, log-x, log-squared-x, sqrt-x, sqrt-x-log-x,
 *                             x-two-thirds, x, x-log-x, x-squared): nowhere more than 1 + W (`within`, default .1)
 *                             times the first point's extrapolation; 1/x, 1/x-squared: grows so with falling x, from
 *                             the last point
 *   order: OF                 grows with x as OF, no slower either: everywhere from 1 - W to 1 + W times that
 *   reason: TEXT              the claim cannot be judged, for this reason; excludes all keys of comparisons
 *
 * `metric` and `series` are optional if the experiment has only one. `series`, `below` and so on take a name or a list;
 * the name of a series that a grid has multiplied stands for all of its cells, which are compared cell by cell. `at`
 * selects points of x: a number, a list, first, last or all; alternatively `from` and `to` give a range. The default is
 * all points; if the points are moments of a run, the last one, except for a trend or a growth.
 *
 * `by` is paper or us: whose claim it is; by default the paper's if the experiment has a `source`, else ours. A paper's
 * claim may have `quote`, the sentence in the paper, and `where` it stands. `smallest` is the smallest difference of
 * interest, for below, above (without a factor) and trend: a number, or a share of the compared value such as 2%; by
 * default 1%, except in claims about a share of the runs.
 *
 * `by_median: true` claims it of the median replicate: with a series, of the median of the paired ratios. `false`
 * claims it of means. The default is true if the experiment's statistic is the median. `in_runs: 90%` claims that it is
 * true in at least this share of the replicates; the median's share is 50%. Neither with `smallest`.
 *
 * `average: true` claims it on the whole: of the averages of both sides over all comparisons of the claim; of a trend,
 * over its series. `minus: [S, T]`, for below and above of one series each, claims it of the differences: of the series
 * less S, compared with the other less T. Both for series that are run, derived replicate by replicate (derive.h).
 *
 * This header reads a claim: which values are to be compared.
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
  CV_LAB_ORDER,
  CV_LAB_REASON,
};

struct cv_lab_terms {
  const char *says, *reason; /* owned by the experiment; `reason` for CV_LAB_REASON only */
  const char *quote, *where; /* owned by the experiment; NULL: none */
  bool is_ours;              /* not the paper's */
  bool average, has_minus;   /* of derived values */
  enum cv_lab_relation relation;
  size_t metric;
  size_t pairs; /* series, and the series that each is compared with; itself for relations to a number or over x */
  struct cv_lab_pair {
    size_t one, other;
  } pair[CV_LAB_PAIRS_MAX];
  struct cv_lab_pair minus; /* series that are subtracted from both sides */
  double number, within, factor;
  double smallest; /* difference of interest; 0: none */
  double runs;     /* true in this share of the replicates, or of their pairs; .5: of the median; 0: of the mean */
  bool is_share;   /* `smallest` is a share of the value that is compared with */
  bool rises;
  double (*growth)(double x); /* of a growth or an order; else NULL */
  size_t points;              /* indices of points */
  size_t point[CV_LAB_POINTS_MAX];
};

/* The number of the experiment's claims. */
size_t cv_lab_claims(const struct cv_lab_experiment *experiment);
/* Checks that all claims are well-formed and name existing series, metrics and points. One line with line and
 * column. */
CV_MUST_USE enum cv_err cv_lab_claims_check(const struct cv_lab_experiment *experiment, struct cv_why *why);
/* Reads one claim. One line with line and column. */
CV_MUST_USE enum cv_err cv_lab_terms_read(const struct cv_lab_experiment *experiment, size_t claim,
                                          struct cv_lab_terms *ret, struct cv_why *why);

#endif
