/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of an experiment: one value for each replicate, series, point and metric. Tables, figures and verdicts
 * use it instead of means, so that comparisons can be paired by replicate.
 */
#ifndef CV_LAB_DATASET_H
#define CV_LAB_DATASET_H

#include "lab/experiment/experiment.h"

struct cv_lab_dataset {
  const struct cv_lab_experiment *experiment; /* borrowed */
  uint64_t replicates;
  double *value; /* read with cv_lab_value(); NAN: not run, or no value */
};

/* The memory limit of a dataset, and the largest number of replicates within it. */
#define CV_LAB_DATASET_BYTES_MAX (UINT64_C(400) << 20)
uint64_t cv_lab_replicates_most(const struct cv_lab_experiment *experiment);

/* Makes a dataset of missing values; the caller frees it. CV_ERR_LIMIT, CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_lab_dataset_init(const struct cv_lab_experiment *experiment, uint64_t replicates,
                                            struct cv_lab_dataset *ret);
void cv_lab_dataset_fini(struct cv_lab_dataset *dataset);

/* Stores a piece's cv_lab_piece_values() values. */
void cv_lab_dataset_put(struct cv_lab_dataset *dataset, size_t setting, uint64_t replicate, const double *values);

/* Stores one value. */
void cv_lab_dataset_set(struct cv_lab_dataset *dataset, uint64_t replicate, size_t series, size_t point, size_t metric,
                        double value);

/* One value; NAN if it is missing. All indices count from 0. */
double cv_lab_value(const struct cv_lab_dataset *dataset, uint64_t replicate, size_t series, size_t point,
                    size_t metric);

#endif
