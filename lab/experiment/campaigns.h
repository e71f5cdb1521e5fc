/* SPDX-License-Identifier: Apache-2.0 */
/* The campaigns of an experiment, one for each series and setting, and the data files that they read. */
#ifndef CV_LAB_CAMPAIGNS_H
#define CV_LAB_CAMPAIGNS_H

#include "lab/experiment/experiment.h"
#include "prepare/prepare.h"

/* Prepares the campaign of a series at a setting; `seed` determines its instance. The caller frees it. */
CV_MUST_USE enum cv_err cv_lab_prepare(const struct cv_lab_experiment *experiment, size_t series, size_t setting,
                                       uint64_t seed, struct cv_prepared *ret, struct cv_why *why);

/* Reads the campaign of the first series and setting, without its data. The caller frees it. */
CV_MUST_USE enum cv_err cv_lab_first_campaign(const struct cv_lab_experiment *experiment, struct cv_campaign_file *ret,
                                              struct cv_why *why);
/* Sets *ret to the data file that a series reads at a setting, on the heap; NULL if it reads none. */
CV_MUST_USE enum cv_err cv_lab_data_path(const struct cv_lab_experiment *experiment, size_t series, size_t setting,
                                         char **ret, struct cv_why *why);
/* If the first campaign reads a file of trips: reads it once, for all campaigns with the same workers. */
CV_MUST_USE enum cv_err cv_lab_taxis_read(struct cv_lab_experiment *experiment, struct cv_why *why);

#endif
