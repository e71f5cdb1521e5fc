/* SPDX-License-Identifier: Apache-2.0 */
/* The table of measures, and the check that a campaign has an experiment's metrics. */
#ifndef CV_LAB_MEASURE_TABLE_H
#define CV_LAB_MEASURE_TABLE_H

#include "lab/run/measure.h"

/* Find a measure by name, NULL if there is none; or by index, NULL past the end. */
const struct cv_lab_measure *cv_lab_measure_find(const char *name);
const struct cv_lab_measure *cv_lab_measure_at(size_t index);

/*
 * Checks that a series can be measured with one of its campaigns: the policy has every metric of the experiment, and
 * the campaign meets the measure's requirements. CV_ERR_INVALID with one line and, for a metric, its position in the
 * file.
 */
CV_MUST_USE enum cv_err cv_lab_measure_check(const struct cv_lab_experiment *experiment, size_t series,
                                             const struct cv_prepared *campaign, struct cv_why *why);

#endif
