/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a sample. All sums are compensated and in the sample's order, so results are equal on all machines. */
#ifndef CV_LAB_STATISTIC_H
#define CV_LAB_STATISTIC_H

#include <stddef.h>
#include <stdint.h>

enum cv_lab_statistic {
  CV_LAB_MEAN,
  CV_LAB_MEDIAN_OF_MEANS,
  CV_LAB_ROOT_MEAN_SQUARE,
  CV_LAB_MEDIAN,
};
/* Their names in experiments, in the order above; NULL-terminated. */
extern const char *const cv_lab_statistics[];

/* What the error bar is, for people: "one standard error of the mean to each side". */
const char *cv_lab_statistic_bar(enum cv_lab_statistic statistic);

/* A statistic with its error; errors are NAN with too few values. */
struct cv_lab_summary {
  double mean;      /* the statistic itself; NAN without values */
  double se;        /* standard error of `mean` */
  double low, high; /* of the error bar */
  uint64_t n;       /* number of values that are not missing */
};

/* Returns value i of a sample, NAN if it is missing. */
typedef double cv_lab_sample_fn(const void *data, size_t i);

/*
 * Computes the statistic of `n` values. Nothing is allocated.
 *
 * Mean: the bar is one standard error to each side. Root mean square: the same, with the error by the delta method.
 *
 * Median of means: the median of the means of 24 groups of consecutive values, as equal in size as possible, or of the
 * values themselves if there are fewer than 48. The bar extends by Gini's mean difference of the group means below the
 * median to one side, and of those above it to the other (Tossou and Dimitrakakis, "Achieving Privacy in the
 * Adversarial Multi-Armed Bandit", 2017, section 4). Its standard error is that of the median of as many normal
 * variables, sqrt(pi/(2 groups)) times their deviation, which is Gini's mean difference of all of them times
 * sqrt(pi)/2.
 *
 * Median: the bar is an interval that has the median with a probability of at least .683, as one standard error to each
 * side has a mean: from the k-th smallest to the k-th largest value (Thompson, "On Confidence Ranges for the Median and
 * Other Expectation Distributions", 1936), whatever their distribution; with fewer than 3 values there is none. The
 * standard error is half its length, over the normal quantile of its exact probability (Price and Bonett, "Estimating
 * the Variance of the Sample Median", 2001).
 */
struct cv_lab_summary cv_lab_summary_of(enum cv_lab_statistic statistic, cv_lab_sample_fn *at, const void *data,
                                        size_t n);

/* The q-quantile of the values that are not missing, q in [0, 1], with linear interpolation; NAN if all are. Nothing is
 * allocated. */
double cv_lab_quantile_of(cv_lab_sample_fn *at, const void *data, size_t n, double q);

/* The least number of heads in `n` tosses of a coin with probability `p` of heads, in (0,1), such that this number or
 * more have at most the probability `tail`; n + 1 if not even n heads have it. */
uint64_t cv_lab_heads_least(uint64_t n, double p, double tail);

/* Degrees of freedom of the standard error of `n` values, for Student's distribution. */
double cv_lab_freedom(enum cv_lab_statistic statistic, uint64_t n);

/* Gini's mean difference: the mean of |a - b| over all pairs of values, which must ascend; NAN for fewer than two. */
double cv_lab_gini(const double *ascending, size_t n);
/* The q-quantile of n > 0 ascending values, q in [0, 1], with linear interpolation. */
double cv_lab_quantile(const double *ascending, size_t n, double q);
void cv_lab_sort(double *value, size_t n);

#endif
