/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that an experiment can run. */
#ifndef CV_LAB_CHECK_H
#define CV_LAB_CHECK_H

#include "lab/experiment/experiment.h"

/* Prepares every campaign of the experiment once, so that errors are reported before anything runs. One line. */
CV_MUST_USE enum cv_err cv_lab_experiment_check(struct cv_lab_experiment *experiment, struct cv_why *why);

#endif
