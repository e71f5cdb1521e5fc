/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The length and the radius of a private phase, for policies whose releases are fresh means with their own noise: Lu,
 * Wang, Qiu and Zhang, "Differentially Private Algorithm for Graphical Bandits" (2022), Algorithm 1, and Sajed and
 * Sheffet, "An Optimal Private Stochastic-MAB Algorithm Based on an Optimal Private Stopping Rule" (2019), Algorithm 2,
 * which have the same terms.
 *
 * With n active arms in phase t, and the campaign's epsilon and delta:
 *   plays   ceil(max{2^(5+2t) ln(8 n t^2/delta), 2^(3+t) q/epsilon}) (lines 10 to 12)
 *   radius  sqrt(ln(8 n t^2/delta)/(2 plays)) + q/(epsilon plays): half of line 23's width
 * with q the noise's quantile at level ln(4 n t^2/delta) (tail.h): that level itself for one Laplace, as the papers
 * have it. The plays are for the noise that is expected, the radius for the noise that the release has. For an arm
 * shown at least `plays` times, the error of its mean exceeds the radius with probability at most delta/(2 n t^2);
 * summed over all arms and phases that is at most delta.
 */
#ifndef CV_THIRDPARTY_PHASES_H
#define CV_THIRDPARTY_PHASES_H

#include "thirdparty/policy/elimination.h"

/* The plays of the present phase; may be infinite. */
double cv_phases_plays(const struct cv_elimination *self);
/* The same as a number for a plan, saturated at UINT32_MAX. */
uint32_t cv_phases_plays_asked(double plays);
/* The radius of an arm whose release has this noise, if every arm was shown `plays` times. */
double cv_phases_radius(const struct cv_elimination *self, const struct cv_tail *tail, double plays);

#endif
