/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PPAR, adaptive ranking (Chen, Yu, Li, Zou, Liang and Cheng, "PPAR: A Privacy-Preserving Adaptive Ranking Algorithm
 * for Multi-Armed-Bandit Crowdsourcing", 2022, Algorithm 1), as printed and made sound.
 *
 * Active set S, class l, settled set C_l within S, removed arms C_{l+1}. A round collects tokens_per_round tokens of
 * every arm that is to be pulled; then arms of S are settled in class l or removed to class l+1. When all of S is
 * settled, S becomes C_{l+1}. The end: S is empty. A settled arm is never moved again.
 *
 * Parameters:
 *   alpha             rank span, >= 0; 0 ranks fully (ends only where there is no tie)
 *   delta             error probability, in (0,1); default 0.1
 *   tokens_per_round  default 6000 (the paper's)
 *   radius   printed  settle at mean >= m - alpha + r, remove at mean < m - alpha - r, m = best mean of S,
 *                     r = 2 sqrt(ln(4K/delta)/(2T)) (Algorithm 1, lines 28 and 31)
 *            proof    the same with r = 2 sqrt(2 ln(4K/delta)/T), as the proof of Lemma 5.3 needs it
 *            sound    by intervals mean +- a, a = sqrt(ln(4K n(n+1)/delta)/(2T)) + q/T with q the noise's quantile at
 *                     delta/(2K n(n+1)), n = releases of the arm: settle at low >= (highest high of the others) -
 *                     alpha, remove at high < (highest low) - alpha. All errors together have probability delta.
 *   settled  hold     pull the unsettled and the arm of the highest upper bound (printed, proof: the leader)
 *            pull     go on pulling all of S (print)
 *
 * Behind a privatizer with mean token offset + slope x (common/base/local.h) the mean token is taken back to x, and the
 * radius is divided by |slope|; Laplace noise in tokens widens it by the tail of all of it at delta/(2K n(n+1)).
 *
 * With printed and proof the leader is settled as soon as every other arm of S is settled or removed, and a new class
 * starts with a round of pulls (print, lines 8 to 20). With sound a new class is first tried with what is known, since
 * the intervals hold at all times; an arm that is moved down several classes in one step is reported once, with the
 * last comparison. A lone arm is settled at once. Nothing is decided before every arm of S has a release.
 *
 * A step costs O(K log K), however many classes it opens.
 */
#ifndef CV_THIRDPARTY_PPAR_H
#define CV_THIRDPARTY_PPAR_H

#include "thirdparty/policy/policy.h"

extern const struct cv_policy_class cv_policy_ppar;

#endif
