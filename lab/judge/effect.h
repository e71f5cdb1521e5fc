/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large an effect may be that cannot be seen. An effect is smaller than x if an equivalence test says so: two
 * one-sided tests (Schuirmann, "A Comparison of the Two One-Sided Tests Procedure and the Power Approach", 1987) reject
 * -x and x, each with tail `tail`. Both do if the interval of the difference lies within (-x, x).
 */
#ifndef CV_LAB_EFFECT_H
#define CV_LAB_EFFECT_H

#include "lab/judge/statistic.h"

/* With fewer replicates that differ, Student's interval is not to be relied on. */
enum { CV_LAB_DIFFERING_LEAST = 10 };

/* A paired difference of which `differing` of its n replicates are not 0. */
struct cv_lab_pairs {
  struct cv_lab_summary difference;
  double freedom; /* of its standard error */
  uint64_t differing;
  double range; /* the largest possible difference of one replicate if the statistic is a mean; 0: unbounded, no mean */
};

/*
 * The largest absolute difference that the replicates leave possible: the end of Student's interval. If fewer than
 * CV_LAB_DIFFERING_LEAST replicates differ, this is 0 or accidental, and at least the share that may differ times
 * `range` remains possible; without a range INFINITY.
 */
double cv_lab_effect_most(const struct cv_lab_pairs *pairs, double tail);
/* About how many replicates would show that the effect is smaller than `smallest`; INFINITY if it does not seem so. */
double cv_lab_effect_replicates(const struct cv_lab_pairs *pairs, double tail, double smallest);

#endif
