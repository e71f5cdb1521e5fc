/* SPDX-License-Identifier: Apache-2.0 */
/* The noise in an arm's mean after n releases, one token a release: what its mechanism declares. */
#ifndef CV_LAB_NOISE_H
#define CV_LAB_NOISE_H

#include "broker/mechanism/mechanism.h"

struct cv_prepared;

/* Whether an arm of the campaign can make so many releases. CV_ERR_INVALID in one line. */
CV_MUST_USE enum cv_err cv_lab_noise_fits(const struct cv_prepared *campaign, double releases, struct cv_why *why);
/* The standard deviation, in scores, by the noise that release n declares. */
double cv_lab_noise_declared(const struct cv_prepared *campaign, double n);

#endif
