/* SPDX-License-Identifier: Apache-2.0 */
/* Draws from the gamma and beta laws, for Thompson sampling. Never for privacy noise. */
#ifndef CV_THIRDPARTY_BETA_H
#define CV_THIRDPARTY_BETA_H

#include "common/base/rng.h"

/* Gamma(shape, 1), shape >= 1: Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables" (2000), section 2
 * (without the squeeze). */
double cv_draw_gamma(struct cv_rng *rng, double shape);
/* Beta(a, b), a and b >= 1, as X/(X+Y) of two gammas. */
double cv_draw_beta(struct cv_rng *rng, double a, double b);

#endif
