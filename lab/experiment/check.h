/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an experiment can be run. */
#ifndef CV_LAB_CHECK_H
#define CV_LAB_CHECK_H

#include "lab/experiment/experiment.h"

/* Makes every campaign of the experiment once, so that what is wrong with one is told before anything runs. */
CV_MUST_USE enum cv_err cv_lab_experiment_check(struct cv_lab_experiment *experiment, struct cv_why *why);

#endif
