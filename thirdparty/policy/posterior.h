/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The posterior of an arm's mean score q, uniform on [0,1] before any token. Its density after `ones` and `zeros`
 * tokens is proportional to l^ones (1-l)^zeros, l = offset + slope q, l in [0,1] for q in [0,1] (common/base/local.h;
 * the slope may be negative). Parts of tokens count likewise.
 */
#ifndef CV_THIRDPARTY_POSTERIOR_H
#define CV_THIRDPARTY_POSTERIOR_H

#include "common/base/local.h"

/*
 * The q above which the posterior has the mass `tail`. ones, zeros >= 0, not both 0; 0 < tail <= 1/2; feedback.scale is
 * 0. It depends on the arguments alone. The mass above the result is `tail` up to a relative error of .002 for tails
 * from 1e-5, .03 from 1e-9.
 *
 * The density of ln(l/(1-l)) is interpolated by cubics through its value and slope at 46 points, which divide the parts
 * on both sides of the mode that count into equal cells; the result is the quantile of this interpolation. So the
 * resolution follows the width of the posterior, unlike that of a grid on [0,1], and the cost does not depend on the
 * number of tokens.
 */
double cv_posterior_upper(double ones, double zeros, struct cv_feedback feedback, double tail);

#endif
