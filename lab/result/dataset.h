/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an experiment has measured: one number for each replicate, series, point and metric. All that is shown, drawn or
 * judged comes from here, so that a paired comparison can look at single replicates.
 */
#ifndef CV_LAB_DATASET_H
#define CV_LAB_DATASET_H

#include "lab/experiment/experiment.h"

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

/* Puts a piece's numbers, cv_lab_piece_values() of them, to their places. */
void cv_lab_dataset_put(struct cv_lab_dataset *dataset, size_t setting, uint64_t replicate, const double *values);

/* One number; NAN if it is not there. All counted from 0. */
double cv_lab_value(const struct cv_lab_dataset *dataset, uint64_t replicate, size_t series, size_t point,
                    size_t metric);

#endif
