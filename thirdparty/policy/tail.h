/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the noise of a release can do, from its groups: its tail. Everything is in units of D/epsilon with
 * D = CV_GRID, as the groups are, except cv_tail_in_scores().
 *
 * For Y a sum of independent Laplaces with scales b_i, v = sum of b_i^2 and b = the largest.
 */
#ifndef CV_THIRDPARTY_TAIL_H
#define CV_THIRDPARTY_TAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/result.h"

/* Scales are finite and positive, counts at least 1: what a release from a peer must pass before it is used here. */
bool cv_tail_is_valid(const struct cv_noise *noise);

/*
 * A q with P(|Y| > q) <= g, 0 < g < 1; 0 without noise. For one Laplace it is b ln(1/g), exact. Otherwise Chernoff's
 * bound at its best lambda,
 *   q = min over 0 < lambda < 1/b of [-(v/b^2) ln(1 - lambda^2 b^2) + ln(2/g)] / lambda.
 * The moment generating function of the discrete Laplace law lies below the continuous one, so this holds for it too
 * (for a single draw up to a factor of 1 + epsilon/(2 D) in g).
 */
double cv_tail_quantile(const struct cv_noise *noise, double g);

/*
 * The same as a sum of scores, together with the noise that a privatizer has put into each of `tokens` tokens: Laplaces
 * of `scale`, in scores; 0 for none. epsilon_micro > 0 unless the release has no noise of its own. It holds when only v
 * and b of `noise` are those of the truth, since nothing else of it is used.
 */
double cv_tail_in_scores(const struct cv_noise *noise, uint64_t epsilon_micro, double scale, uint64_t tokens, double g);

#endif
