/* SPDX-License-Identifier: Apache-2.0 */
/* What the numbers of a dataset come to. */
#ifndef CV_LAB_SUMMARY_H
#define CV_LAB_SUMMARY_H

#include "lab/judge/statistic.h"
#include "lab/result/dataset.h"
#include "lab/result/result.h"

/* What the replicates of one place come to by the experiment's statistic. */
struct cv_lab_summary cv_lab_summarise(const struct cv_lab_dataset *dataset, size_t series, size_t point,
                                       size_t metric);
/* The same of the differences a - factor b, replicate by replicate; of root mean squares, how these differ. */
struct cv_lab_summary cv_lab_compare(const struct cv_lab_dataset *dataset, size_t series_a, size_t point_a,
                                     size_t series_b, size_t point_b, double factor, size_t metric);
/* As cv_lab_summarise(), or of a line that is calculated its value, without an error and with n = 0. */
CV_MUST_USE enum cv_err cv_lab_found(const struct cv_lab_dataset *dataset, size_t series, size_t point, size_t metric,
                                     struct cv_lab_summary *ret);

/* One row for each series, point and metric that has a number; and the lines that are calculated. */
CV_MUST_USE enum cv_err cv_lab_dataset_rows(const struct cv_lab_dataset *dataset, struct cv_lab_result *result);

#endif
