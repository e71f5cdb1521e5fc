/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/result/dataset.h"

#include <math.h>
#include <stdlib.h>

uint64_t cv_lab_replicates_most(const struct cv_lab_experiment *experiment) {
  return CV_LAB_DATASET_BYTES_MAX / sizeof(double) / cv_lab_replicate_values(experiment);
}

enum cv_err cv_lab_dataset_init(const struct cv_lab_experiment *experiment, uint64_t replicates,
                                struct cv_lab_dataset *ret) {
  size_t n = cv_lab_replicate_values(experiment);
  if (replicates > cv_lab_replicates_most(experiment)) {
    return CV_ERR_LIMIT;
  }
  /* NAN everywhere: a shard, or a run that was resumed with more replicates, fills only a part. */
  double *value = malloc((replicates * n + 1) * sizeof(*value)); /* + 1: not 0 bytes for 0 replicates */
  if (value == NULL) {
    return CV_ERR_NOMEM;
  }
  for (size_t i = 0; i < replicates * n; i++) {
    value[i] = (double)NAN;
  }
  *ret = (struct cv_lab_dataset){.experiment = experiment, .replicates = replicates, .value = value};
  return CV_OK;
}

void cv_lab_dataset_fini(struct cv_lab_dataset *dataset) {
  free(dataset->value);
  *dataset = (struct cv_lab_dataset){0};
}

static size_t place_of(const struct cv_lab_dataset *dataset, uint64_t replicate, size_t series, size_t point,
                       size_t metric) {
  const struct cv_lab_experiment *experiment = dataset->experiment;
  return replicate * cv_lab_replicate_values(experiment) + (series * experiment->points + point) * experiment->metrics +
         metric;
}

void cv_lab_dataset_put(struct cv_lab_dataset *dataset, size_t setting, uint64_t replicate, const double *values) {
  const struct cv_lab_experiment *experiment = dataset->experiment;
  size_t points = experiment->points / cv_lab_settings_of(experiment);
  for (size_t series = 0; series < experiment->series; series++) {
    for (size_t point = 0; point < points; point++) {
      for (size_t metric = 0; metric < experiment->metrics; metric++) {
        dataset->value[place_of(dataset, replicate, series, setting + point, metric)] = *values++;
      }
    }
  }
}

void cv_lab_dataset_set(struct cv_lab_dataset *dataset, uint64_t replicate, size_t series, size_t point, size_t metric,
                        double value) {
  dataset->value[place_of(dataset, replicate, series, point, metric)] = value;
}

double cv_lab_value(const struct cv_lab_dataset *dataset, uint64_t replicate, size_t series, size_t point,
                    size_t metric) {
  return dataset->value[place_of(dataset, replicate, series, point, metric)];
}
