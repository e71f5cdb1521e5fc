/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an experiment has measured: one number for each replicate, series, point and metric. All that is shown, drawn or
 * judged comes from here, so that a paired comparison can look at single replicates.
 */
#ifndef CV_LAB_DATASET_H
#define CV_LAB_DATASET_H

#include "lab/experiment.h"
#include "lab/result.h"

struct cv_lab_dataset {
  const struct cv_lab_experiment *experiment; /* borrowed */
  uint64_t replicates;
  double *value; /* see cv_lab_value(); NAN: not run, or no such number */
};

/* What a dataset may take in memory, and how many replicates that is. */
#define CV_LAB_DATASET_BYTES_MAX (UINT64_C(400) << 20)
uint64_t cv_lab_replicates_most(const struct cv_lab_experiment *experiment);

/* Without a number yet. CV_ERR_LIMIT, CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_lab_dataset_init(const struct cv_lab_experiment *experiment, uint64_t replicates,
                                            struct cv_lab_dataset *ret);
void cv_lab_dataset_fini(struct cv_lab_dataset *dataset);

/* One piece of work is a replicate of a setting, all series: this many numbers, [series][point of the setting][metric].
 */
size_t cv_lab_piece_values(const struct cv_lab_experiment *experiment);
/* Puts a piece's numbers to their places. */
void cv_lab_dataset_put(struct cv_lab_dataset *dataset, size_t setting, uint64_t replicate, const double *values);

/* One number; NAN if it is not there. All counted from 0. */
double cv_lab_value(const struct cv_lab_dataset *dataset, uint64_t replicate, size_t series, size_t point,
                    size_t metric);

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
