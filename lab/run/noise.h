/* SPDX-License-Identifier: Apache-2.0 */
/* The noise in an arm's mean after n releases with one token each, as the mechanism declares it. */
#ifndef CV_LAB_NOISE_H
#define CV_LAB_NOISE_H

#include "broker/mechanism/mechanism.h"

struct cv_prepared;

/* Checks that an arm of the campaign can make this many releases. CV_ERR_INVALID with one line. */
CV_MUST_USE enum cv_err cv_lab_noise_fits(const struct cv_prepared *campaign, double releases, struct cv_why *why);
/* The standard deviation, in scores, of the noise that release n declares. */
double cv_lab_noise_declared(const struct cv_prepared *campaign, double n);
/* The root mean square of the declared noise in the sums of releases 1 to n, over the number of items in the n-th. */
double cv_lab_noise_so_far(const struct cv_prepared *campaign, double n);

#endif
