/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All mechanisms at equal epsilon: the standard deviation of the noise in an arm's mean after n releases, by the noise
 * that a release declares ("theory") and measured.
 */
#ifndef CV_LAB_MECHANISMS_H
#define CV_LAB_MECHANISMS_H

#include "lab/preset.h"

CV_MUST_USE enum cv_err cv_lab_mechanisms(const struct cv_lab_settings *settings, struct cv_lab_result *result,
                                          struct cv_why *why);

#endif
