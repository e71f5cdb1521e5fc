/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confidence limits for the mean m of tokens in [0,1], from their noisy sum: S = the sum of T tokens plus the noises
 * that a mechanism has added so far, k Laplace variables. A limit says which m are excluded from below; for the other
 * side, exclude 1 - m by T - S. docs/beyond.md has the proofs. Everything is in scores.
 *
 * With psi_m(x) = ln(1 - m + m e^x), the largest logarithmic moment generating function of the laws on [0,1] of mean m:
 *
 *   One look (struct cv_look): m is excluded if
 *       max over x of x S - T psi_m(x) - ln c(x) >= level,  c(x) = sup over y of e^(x y) P(noise >= y).
 *     For a fixed T the true m is excluded where S passes a threshold. So the probability is at most e^-level, with no
 *     union over x: at the x that gives the threshold, Chernoff's bound for the tokens and c for the noise give it. It
 *     holds for T fixed in advance and tokens that are independent, or drawn without replacement
 *     from a finite set whose mean is m (Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables",
 *     1963, section 6). Each further look needs a share of the error probability.
 *
 *   Mixture martingale (struct cv_mixture): m is excluded unless
 *       sum over j of w_j e^(x_j S - T psi_m(x_j)) prod over the noises of (1 - x_j^2 b^2) < e^level.
 *     At the true m this is a supermartingale that starts at 1, so by Ville's inequality it ever reaches e^level with
 *     probability at most e^-level: for all looks together, and with lengths chosen from what was seen. It needs a
 *     constant conditional mean, and a mechanism each release of which adds fresh noise to the one before.
 */
#ifndef CV_THIRDPARTY_CONFIDENCE_H
#define CV_THIRDPARTY_CONFIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/result.h"

enum { CV_LOOK_GRID = 96, CV_MIXTURE_MAX = 40 };

/* The noisy sum of an arm. */
struct cv_noisy_sum {
  double tokens, sum;           /* T > 0 and S */
  double unit;                  /* D/epsilon, in scores: the unit of the noise's scales */
  const struct cv_noise *noise; /* no groups: no noise */
};

/* -ln of the product of 1 - x^2 b^2 over the noises, b their scales: no less than the logarithmic moment generating
 * function of their sum at x, also for discrete noise. Infinite where a noise has none. */
double cv_noisy_sum_moment(const struct cv_noisy_sum *at, double x);

/* The upper end of a grid of x: 1/unit times `share`, at most CV_X_MOST, which takes its place without noise. */
#define CV_X_MOST 8.0

/* The x of a look, ascending, and ln c(x) of one kind of noise; infinite where c is. */
struct cv_look {
  double x[CV_LOOK_GRID], cost[CV_LOOK_GRID];
};

/* ln c(x) of the sum of k Laplace variables of scale 1, 0 < x <= 1, at most 1e-9 above it: by the exact tail. Infinite
 * for x = 1 and k > 1. For k > CV_TILT_EXACT Chernoff's bound -k ln(1 - x^2), which is larger. */
enum { CV_TILT_EXACT = 8 }; /* at most CV_LAPLACES_MAX */
double cv_laplace_tilt(double x, uint32_t k);

/* A look at a sum with k Laplace noises of scale `unit`; `unit` 0 or k 0: without noise. The rounding of discrete noise
 * to the grid of scores is in the cost. */
void cv_look_init(double unit, uint32_t k, struct cv_look *ret);
/* A look at a sum with the noise of `at`: by the exact tail if all of it has one scale, else as cv_look_init_any(). */
void cv_look_init_for(const struct cv_noisy_sum *at, struct cv_look *ret);
/* A look at a sum with this noise, whatever it is, by the product of the moment generating functions. */
void cv_look_init_any(const struct cv_noisy_sum *at, struct cv_look *ret);
/* The same by the exact tail of up to CV_TILT_EXACT noises of the largest scale, and by the product of the moment
 * generating functions of the others: never more than cv_look_init_any() but for rounding. The groups must be the
 * noises themselves (cv_traits_states_noises()). `kept` has CV_TILT_EXACT looks, zeroed at first, and saves time. */
void cv_look_init_exact(const struct cv_noisy_sum *at, struct cv_look *kept, struct cv_look *ret);
/* The largest excluded m; 0: none. Of `at` only tokens and sum count. */
double cv_look_low(const struct cv_look *look, const struct cv_noisy_sum *at, double level);
/*
 * How many tokens of mean p a first look should have, to exclude the mean q at this level. With one noise of scale
 * 1/epsilon that is (level - ln 2 + 1.6)/d, d the private divergence of p and q: at x = epsilon the noise costs -ln 2,
 * and 1.6 is a margin for its size. With more noises the same margin at the x that needs the fewest tokens. Epsilon is
 * infinite without noise. The result may be infinite.
 */
double cv_look_first(double epsilon, uint32_t noises, double p, double q, double level);

/* A look that is kept as long as the noise stays the same. Starts zeroed. */
struct cv_look_kept {
  bool is_made;
  double scale; /* of the noise that it was made for, in scores */
  uint64_t count;
  struct cv_look look;
};
/* A look at a sum with the noise of `at`, as cv_look_init_for() makes it; valid until the next call. */
const struct cv_look *cv_look_keep(struct cv_look_kept *kept, const struct cv_noisy_sum *at);

/* x_j with ln w_j. The weights sum to 1. */
struct cv_mixture {
  uint32_t n;
  double x[CV_MIXTURE_MAX], log_weight[CV_MIXTURE_MAX];
};

/* x_1 = min(.8/unit, 3), each the half of the one before; those down to .004 (one at least) share weight .9, the next
 * six share .1. `unit` 0: without noise. */
void cv_mixture_init(double unit, struct cv_mixture *ret);
/* The largest excluded m, or slightly less; 0: none. */
double cv_mixture_low(const struct cv_mixture *mixture, const struct cv_noisy_sum *at, double level);

/*
 * Narrows the interval [*low, *high] by new limits. Limits that contradict each other lie in the error that they allow,
 * or the tokens are not what they are said to be: the interval then shrinks to a point within what it was.
 */
void cv_limits_narrow(double new_low, double new_high, double *low, double *high);

#endif
