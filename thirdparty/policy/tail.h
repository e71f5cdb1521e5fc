/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tail of a release's noise, from its groups. Everything is in units of D/epsilon with D = CV_GRID, like the
 * groups, except cv_tail_in_scores().
 *
 * For Y a sum of independent Laplaces with scales b_i, v = sum of b_i^2 and b = the largest.
 */
#ifndef CV_THIRDPARTY_TAIL_H
#define CV_THIRDPARTY_TAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/result.h"

/* True if scales are finite and positive and counts at least 1. Check the release of a peer before any use here. */
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
 * The same in units of a sum of scores, including the noise that a privatizer added to each of `tokens` tokens: Laplace
 * variables of `scale`, in scores; 0 for none. epsilon_micro > 0 unless the release has no noise of its own. Only v, b
 * and the count of `noise` are used, so it may be any noise with the true v and b.
 */
double cv_tail_in_scores(const struct cv_noise *noise, uint64_t epsilon_micro, double scale, uint64_t tokens, double g);

#endif
