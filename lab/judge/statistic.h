/* SPDX-License-Identifier: Apache-2.0 */
/* What a sample comes to. All sums are compensated and in the order of the sample: a result is one on any machine. */
#ifndef CV_LAB_STATISTIC_H
#define CV_LAB_STATISTIC_H

#include <stddef.h>
#include <stdint.h>

enum cv_lab_statistic {
  CV_LAB_MEAN,
  CV_LAB_MEDIAN_OF_MEANS,
  CV_LAB_ROOT_MEAN_SQUARE,
};
/* How a file says it, in the order above; NULL-terminated. */
extern const char *const cv_lab_statistics[];

/* Deviations are NAN where there are too few. */
struct cv_lab_summary {
  double mean;      /* by the statistic; NAN of no numbers */
  double se;        /* its standard error */
  double low, high; /* of the error bar */
  uint64_t n;       /* numbers that are there */
};

/* Number i of a sample, NAN where it is missing. */
typedef double cv_lab_sample_fn(const void *data, size_t i);

/*
 * Of `n` numbers.
 *
 * Mean: the bar is one standard error to each side. Root mean square: the same, its error by the delta method.
 *
 * Median of means: of the means of 24 groups of consecutive numbers, as equal as they can be, or of single ones if
 * there are fewer than 48. The bar reaches from it by Gini's mean difference of the group means below it and of those
 * above it (Tossou and Dimitrakakis, "Achieving Privacy in the Adversarial Multi-Armed Bandit", 2017, section 4). Its
 * standard error is that of a median of that many normal variables, sqrt(pi/(2 groups)) times their deviation, which is
 * Gini's mean difference of all of them times sqrt(pi)/2.
 */
struct cv_lab_summary cv_lab_summary_of(enum cv_lab_statistic statistic, cv_lab_sample_fn *at, const void *data,
                                        size_t n);

/* Degrees of freedom of the standard error of `n` numbers: of Student's distribution, if it were normal ones. */
double cv_lab_freedom(enum cv_lab_statistic statistic, uint64_t n);

/* Mean |a - b| over all pairs of ascending numbers; NAN of fewer than two. */
double cv_lab_gini(const double *ascending, size_t n);
/* The q-quantile of n > 0 ascending numbers, q in [0, 1], linear between neighbours. */
double cv_lab_quantile(const double *ascending, size_t n, double q);
void cv_lab_sort(double *value, size_t n);

#endif
