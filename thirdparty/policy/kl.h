/* SPDX-License-Identifier: Apache-2.0 */
/* Divergence of two coins, d(p, q) = KL(Bernoulli(p), Bernoulli(q)) in nats, and how far one can be from another. */
#ifndef CV_THIRDPARTY_KL_H
#define CV_THIRDPARTY_KL_H

/* p, q in [0,1]; infinite where q rules out what p does not. */
double cv_kl(double p, double q);

/*
 * max{q : d(p, q) <= bound}, p in [0,1], bound >= 0. By Newton's method: d is convex and increasing in q above p, so
 * from a q that is too high its steps fall to the root and never pass it. It starts at the lower of two such q, that of
 * Pinsker's inequality, p + sqrt(bound/2), and the one where d(p, q) >= p ln p + (1-p) ln((1-p)/(1-q)) reaches the
 * bound, which is nearly the root where that is close to 1. Correct to about 1e-14.
 */
double cv_kl_upper(double p, double bound);
/* min{q : d(p, q) <= bound}. */
double cv_kl_lower(double p, double bound);

#endif
