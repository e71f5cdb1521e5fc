/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact samplers of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020): Bernoulli of
 * exp(-p/q) (Algorithm 1) and the discrete Laplace law (Algorithm 2). They use integers only, so there is no rounding
 * error; the one assumption is that the words of the cv_rng are uniform and independent.
 *
 * The running time depends on the value drawn. Draw before the secret that the noise protects is known.
 */
#ifndef CV_NOISE_DLAPLACE_H
#define CV_NOISE_DLAPLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/rng.h"

#define CV_DLAPLACE_P_END (UINT64_C(1) << 53)

/* P(X = x) proportional to exp(-|x| q/p): scale p/q in lowest terms. For an integer query of sensitivity D a draw of
 * scale D/epsilon gives epsilon. */
struct cv_dlaplace {
  uint64_t p, q;
  uint64_t biased; /* 2^63 mod p: the low products that would favour some values below p */
};

/* CV_ERR_INVALID if p or q is 0, CV_ERR_LIMIT if p >= 2^53 in lowest terms. */
CV_MUST_USE enum cv_err cv_dlaplace_init(struct cv_dlaplace *ret, uint64_t p, uint64_t q);

/* One draw. About three words of the source; the magnitude stays below 1024 p (beyond has probability e^-1023). */
int64_t cv_dlaplace_draw(const struct cv_dlaplace *law, struct cv_rng *rng);

/* True with probability exp(-p/q), exactly; q > 0. */
bool cv_bernoulli_exp(struct cv_rng *rng, uint64_t p, uint64_t q);

#endif
