/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Chen, Yu, Li, Zou, Liang and Cheng, "PPAR: A Privacy-Preserving Adaptive Ranking Algorithm for
 * Multi-Armed-Bandit Crowdsourcing" (2022) prove about a ranking, as lines of a figure (formula.h).
 *
 * K arms; alpha, delta and tau = tokens_per_round are the policy's. D is the least distance of any mean from any
 * segmentation point, the best mean of a class minus alpha.
 */
#ifndef CV_LAB_PPAR_BOUND_H
#define CV_LAB_PPAR_BOUND_H

#include "prepare/prepare.h"

/* Theorem 5.1: the policy has the four parameters, the means are given, and D is not 0. */
CV_MUST_USE enum cv_err cv_lab_ppar_fits(const struct cv_prepared *campaign, double x, struct cv_why *why);
/* Theorem 5.1, its proof: the total number of tokens is at most 72 K ln(4K/delta)/D^2. */
double cv_lab_ppar_cost(const struct cv_prepared *campaign, double x);
/* Theorem 5.1: the ranking is correct with probability at least (1 - delta)^(R r), R = ceil(1/alpha) and
 * r = ceil(72 ln(4K/delta)/(D^2 tau)). */
double cv_lab_ppar_success(const struct cv_prepared *campaign, double x);

/* Lemma 5.2: a finite epsilon. */
CV_MUST_USE enum cv_err cv_lab_ppar_noise_fits(const struct cv_prepared *campaign, double n, struct cv_why *why);
/*
 * Lemma 5.2: P(|noise in the mean of n releases| >= z) <= 2 exp(-z/s), s = 2 sqrt(2)(ln n + 1)/(n epsilon) with one
 * token per release. A variable with this tail has a root mean square of at most s sqrt(ln^2 2 + 2 ln 2 + 2): the
 * integral of 2 z min(1, 2 exp(-z/s)).
 */
double cv_lab_ppar_noise(const struct cv_prepared *campaign, double n);

#endif
