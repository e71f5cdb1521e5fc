/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a private phase is and what it decides by, for the policies whose releases are fresh means with one Laplace
 * noise: Lu, Wang, Qiu and Zhang, "Differentially Private Algorithm for Graphical Bandits" (2022), Algorithm 1, and
 * Sajed and Sheffet, "An Optimal Private Stochastic-MAB Algorithm Based on an Optimal Private Stopping Rule" (2019),
 * Algorithm 2, which have the same terms.
 *
 * With n arms in the running in phase t, and epsilon and delta the campaign's:
 *   plays   ceil(max{2^(5+2t) ln(8 n t^2/delta), 2^(3+t) ln(4 n t^2/delta)/epsilon}) (lines 10 to 12)
 *   radius  sqrt(ln(8 n t^2/delta)/(2 plays)) + ln(4 n t^2/delta)/(epsilon plays): half of line 23's width
 * An arm that is shown at least `plays` times misses its mean by more with probability delta/(2 n t^2) at most, so all
 * arms in all phases with probability delta.
 */
#ifndef CV_THIRDPARTY_PHASES_H
#define CV_THIRDPARTY_PHASES_H

#include "thirdparty/policy/elimination.h"

/* Of the present phase; may be infinite. */
double cv_phase_plays(const struct cv_elimination *self);
/* The same as a number in a plan, which stops at the end of its range. */
uint32_t cv_phase_plays_asked(double plays);
/* The radius when every arm has been shown so many times. */
double cv_phase_radius(const struct cv_elimination *self, double plays);

#endif
