/* SPDX-License-Identifier: Apache-2.0 */
/* The campaigns of an experiment: one for each series and setting, and the data that they read. */
#ifndef CV_LAB_CAMPAIGNS_H
#define CV_LAB_CAMPAIGNS_H

#include "lab/experiment/experiment.h"
#include "prepare/prepare.h"

/* The campaign of a series at a setting, its instance drawn by `seed`. */
CV_MUST_USE enum cv_err cv_lab_prepare(const struct cv_lab_experiment *experiment, size_t series, size_t setting,
                                       uint64_t seed, struct cv_prepared *ret, struct cv_why *why);

/* The data file as the campaign names it; NULL: it names none. */
const char *cv_lab_experiment_data(const struct cv_lab_experiment *experiment);
/* The data file that a series reads at a setting, on the heap; NULL: it reads none. */
CV_MUST_USE enum cv_err cv_lab_data_path(const struct cv_lab_experiment *experiment, size_t series, size_t setting,
                                         char **ret, struct cv_why *why);
/* Reads the trips that the first campaign names, if it does, once for all campaigns that have the same workers. */
CV_MUST_USE enum cv_err cv_lab_taxis_read(struct cv_lab_experiment *experiment, struct cv_why *why);

#endif
