/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether one arm is better than another, from the noisy sums of both (struct cv_noisy_sum), whose tokens lie in [0,1].
 *
 * Let S and T be the better arm's, S' and T' the other one's. For every u, while the better arm's mean is at most u
 * and the other one's at least u,
 *
 *   M(u) = sum over j of w_j e^(y_j S - T psi_u(y_j) + x_j (T' - S') - T' psi_(1-u)(x_j))
 *          times the products of (1 - y_j^2 b^2) and (1 - x_j^2 b^2) over the noises of the two sums
 *
 * is a supermartingale that starts at 1 (confidence.h has psi and what it needs). If the better arm is not better,
 * there is such a u. So the least M(u) over all u reaches e^level with probability e^-level at most, at any time,
 * whichever arm is pulled, however often: no union over looks, nor over a bound that separates the two. Intervals of
 * each arm would pay for both arms' errors.
 *
 * Pairs of x and y: x of the mixture (confidence.h) for the other arm, and x or x/2 for the better arm, which has more
 * tokens as a rule. docs/beyond.md has the proof.
 */
#ifndef CV_THIRDPARTY_PAIR_H
#define CV_THIRDPARTY_PAIR_H

#include "thirdparty/policy/confidence.h"

/* The least of ln M(u) over u in [0,1], or at most 1e-6 less. ln M is convex in u. */
double cv_pair_evidence(const struct cv_mixture *mixture, const struct cv_noisy_sum *better,
                        const struct cv_noisy_sum *other);
/* ln M(u) itself, and its derivative. */
double cv_pair_log(const struct cv_mixture *mixture, const struct cv_noisy_sum *better,
                   const struct cv_noisy_sum *other, double u, double *ret_slope);

#endif
