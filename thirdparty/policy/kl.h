/* SPDX-License-Identifier: Apache-2.0 */
/* The divergence of two coins, d(p, q) = KL(Bernoulli(p), Bernoulli(q)) in nats, and its inverses in q. */
#ifndef CV_THIRDPARTY_KL_H
#define CV_THIRDPARTY_KL_H

/* p, q in [0,1]; infinite if q excludes an outcome that p permits. */
double cv_kl(double p, double q);

/*
 * max{q : d(p, q) <= bound}, p in [0,1], bound >= 0. Newton's method: d is convex and increasing in q above p, so from
 * a start above the root the steps fall to the root and never pass it. The start is the lower of two upper bounds:
 * Pinsker's inequality gives p + sqrt(bound/2); the other is the q where p ln p + (1-p) ln((1-p)/(1-q)) <= d(p, q)
 * reaches the bound, which is close to the root if the root is near 1. Correct to about 1e-14.
 */
double cv_kl_upper(double p, double bound);
/* min{q : d(p, q) <= bound}. */
double cv_kl_lower(double p, double bound);

/*
 * The divergence left of d(p, q) where each token is epsilon-DP (Azize, Wu, Honda, Orabona, Ito and Basu, "Optimal
 * Regret of Bandits under Differential Privacy", 2025): inf over z in [0,1] of d(z, q) + epsilon |p - z|, which equals
 * the supremum over |x| <= epsilon of x p - ln(1 - q + q e^x). Any real p (a noisy mean), q in [0,1], epsilon > 0, also
 * infinite. Convex in p and in q, 0 at p = q.
 */
double cv_kl_private(double p, double q, double epsilon);

#endif
