/* SPDX-License-Identifier: Apache-2.0 */
/* Summarises a dataset. */
#ifndef CV_LAB_SUMMARY_H
#define CV_LAB_SUMMARY_H

#include "lab/judge/statistic.h"
#include "lab/result/dataset.h"
#include "lab/result/result.h"

/* The experiment's statistic over the replicates of one series, point and metric. */
struct cv_lab_summary cv_lab_summarise(const struct cv_lab_dataset *dataset, size_t series, size_t point,
                                       size_t metric);
/* The same of the paired differences a - factor b; for root mean squares, the difference of the two. */
struct cv_lab_summary cv_lab_compare(const struct cv_lab_dataset *dataset, size_t series_a, size_t point_a,
                                     size_t series_b, size_t point_b, double factor, size_t metric);
/* The number of replicates in which a - b is not 0. */
uint64_t cv_lab_differing(const struct cv_lab_dataset *dataset, size_t series_a, size_t point_a, size_t series_b,
                          size_t point_b, size_t metric);
/* One side of a comparison: a series at a point, or a number. */
struct cv_lab_side {
  bool is_number;
  double number;
  size_t series, point;
};

/* The paired values of two sides. */
struct cv_lab_signs {
  uint64_t n;                 /* pairs of which no value is missing */
  uint64_t less, equal, more; /* of them, those with a < factor b, = and > */
  bool is_ratio;              /* every b is above 0 */
  double median, low, high;   /* and quartiles of a/b; if not is_ratio, of a - b */
};
struct cv_lab_signs cv_lab_signs_of(const struct cv_lab_dataset *dataset, const struct cv_lab_side *a,
                                    const struct cv_lab_side *b, double factor, size_t metric);

/* As cv_lab_summarise(); for a series with a formula its value, without an error and with n = 0. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_lab_found(const struct cv_lab_dataset *dataset, size_t series, size_t point, size_t metric,
                                     struct cv_lab_summary *ret);

/* Adds one row for each series, point and metric with a value, formulas included. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_lab_dataset_rows(const struct cv_lab_dataset *dataset, struct cv_lab_result *result);

#endif
