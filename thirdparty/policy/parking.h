/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which arms of a ranking are parked: taken out of the active set S undecided. ranking.h says what that means for the
 * classes of the others. Two kinds:
 *
 *   used up    the arm has no further tokens, and its interval decides nothing. Arms that were removed from the class
 *              only because of it are undecided again.
 *   boundary   the tokens that are left cannot decide it: see below. Only by interval, and only if either
 *                - another arm of S is surely no worse (its low >= the arm's high), so that the arm is not needed as
 *                  the best of its class, and the arm is in its class or in the next one; or
 *                - no arm of S would be left undecided, since all that are cannot be decided: their class is over, and
 *                  each is in one of at most three classes. With alpha 0 these are two or three arms that tie.
 *
 * When tokens cannot decide an arm (a heuristic: it affects cost only). An arm with n tokens and its reference (where
 * it would be settled: the highest upper bound; else the highest lower bound) with n' are decided when their half
 * widths sum to the gap between their estimates, beyond alpha. The widths fall as the root of the tokens. The gap is
 * taken to be one standard deviation larger than it looks: `doubt` of each half width, together. So the arm needs about
 * (n + n') ((w + w')/gap)^2 tokens, less the n + n' that it has. An arm that waits for its class needs as many as make
 * its half width alpha/4 (twice its tokens with alpha 0). What is left of the limit goes to the arms that need least,
 * one by one; for the others it does not suffice: they are hopeless. Hopeless arms that may not be parked yet are
 * pulled only if all that are undecided are hopeless.
 */
#ifndef CV_THIRDPARTY_PARKING_H
#define CV_THIRDPARTY_PARKING_H

#include "thirdparty/policy/ranking.h"

/* Parks what is to be parked, when the present intervals decide nothing more. True if S has changed. */
bool cv_parking_park(struct cv_ranking *ranking);
/* As cv_policy_need(). */
double cv_parking_need(const struct cv_ranking *ranking, uint32_t i);

#endif
