/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast draws for experiments in one process. Simulated scores only, never the noise of a mechanism (common/noise).
 *
 * There are two levels. The token level draws each token, many in parallel: cv_sampler_bernoulli_sum and
 * cv_sampler_clipped_normal_sum. The sum level draws the sum of n Bernoulli tokens as one binomial variable:
 * cv_binomial_draw.
 *
 * All results depend on the stream alone. The token level has one kernel per instruction set, chosen by the processor's
 * features; all kernels give the same results, bit by bit, and the same state afterwards.
 */
#ifndef CV_SIMULATE_SAMPLER_H
#define CV_SIMULATE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rng.h"

enum { CV_SAMPLER_LANES = 8 };

struct cv_sampler_kernel;

/* Eight generators (xoshiro256++, Blackman and Vigna 2018) that advance together. It may be copied; a copy gives the
 * same results. */
struct cv_sampler {
  uint64_t state[4][CV_SAMPLER_LANES];
  const struct cv_sampler_kernel *kernel;
};

/* Starts the stream of (seed, a, b, c), as in common/base/rng.h, with the best kernel of this processor. About 100
 * ns. */
void cv_sampler_init(struct cv_sampler *sampler, uint64_t seed, uint64_t a, uint64_t b, uint64_t c);

/* The kernels by index, the plain one first and the fastest last; NULL past the end. */
const struct cv_sampler_kernel *cv_sampler_kernel_at(size_t index);
const char *cv_sampler_kernel_name(const struct cv_sampler_kernel *kernel);
/* True if this processor can run the kernel. */
bool cv_sampler_kernel_runs(const struct cv_sampler_kernel *kernel);

/*
 * Draws `count` independent tokens, each 1 with probability p, and returns the number of ones; p in [0,1], not NaN.
 *
 * Exact for every double p, including subnormal ones: a token is a uniform real that is compared with the binary
 * expansion of p bit by bit, until the first bit that differs. A pass compares four bits of 512 tokens in parallel; the
 * undecided tokens (one in 16) continue together in the next pass. That is about 4.3 random bits per token.
 */
uint64_t cv_sampler_bernoulli_sum(struct cv_sampler *sampler, uint64_t count, double p);

/*
 * Draws `count` < 2^42 independent scores and returns their sum in grid units: N(mean, sd^2) clipped to [0,1] and
 * rounded to the nearest grid point (common/base/grid.h). mean and sd >= 0 are finite.
 *
 * Box and Muller's method in doubles. A standard normal is accurate to 10^-12 and ends at 8.49, beyond which the law
 * has probability 2^-55; so the distribution function of a score is accurate to 10^-12 wherever it is continuous.
 */
int64_t cv_sampler_clipped_normal_sum(struct cv_sampler *sampler, uint64_t count, double mean, double sd);

/*
 * Binomial(n, p), n <= 2^40, p in [0,1].
 *
 * Min(n p, n (1 - p)) below 10: inversion, from 0 upward. Otherwise transformed rejection, BTRS of Hormann, "The
 * generation of binomial random variates" (1993), with the probabilities in the saddle-point form of Loader, "Fast and
 * accurate computation of binomial probabilities" (2000), which avoids cancellation for large n.
 *
 * Exact up to the rounding of doubles: the uniforms have 53 bits, so a value of probability P is drawn with P (1 +- e)
 * +- 2^-53, e about 2^-50 standard deviations (of the sum, in tokens), thus 2^-30 at n = 2^40.
 */
struct cv_binomial {
  uint64_t n;
  bool flipped; /* drawn as n - Binomial(n, 1 - p) */
  double p;     /* at most 1/2 */
  double none;  /* inversion: the probability of 0; below 0: rejection */
  double odds;  /* inversion: p/(1 - p) */
  /* Rejection: the mode, the mean minus the mode, and Hormann's names. */
  double mode, shift, a, b, alpha, v_r;
};

/* Prepares a law; a draw then uses as many numbers of the stream as it needs. */
void cv_binomial_init(struct cv_binomial *law, uint64_t n, double p);
uint64_t cv_binomial_draw(const struct cv_binomial *law, struct cv_rng *rng);

#endif
