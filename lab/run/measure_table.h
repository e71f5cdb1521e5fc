/* SPDX-License-Identifier: Apache-2.0 */
/* The measures by their names, and what a campaign can be measured by. */
#ifndef CV_LAB_MEASURE_TABLE_H
#define CV_LAB_MEASURE_TABLE_H

#include "lab/run/measure.h"

/* By name, NULL if there is none; and by index, NULL past the end. */
const struct cv_lab_measure *cv_lab_measure_find(const char *name);
const struct cv_lab_measure *cv_lab_measure_at(size_t index);

/*
 * Whether a series can be measured with this campaign of its: the policy has every metric of the experiment, and the
 * measure what it needs. One line, with the place of the metric in the file.
 */
CV_MUST_USE enum cv_err cv_lab_measure_check(const struct cv_lab_experiment *experiment, size_t series,
                                             const struct cv_prepared *campaign, struct cv_why *why);

#endif
