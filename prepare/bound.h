/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How few tokens a ranking can take: two lower bounds on the expected number of tokens of any algorithm whose whole
 * view is epsilon-private, which ends almost surely, and whose ranking of arms with 0-or-1 scores is wrong with
 * probability at most delta < 1/2, whatever their means in [0,1].
 *
 * A ranking at rank span alpha is the class of each arm: the best arm left and all arms within alpha of it form the
 * next class (worker/quality/truth.h). Write d for cv_kl_private at epsilon, N_a for the tokens of arm a, and
 * c = kl(delta, 1 - delta). For all means m' that rank otherwise than the true means m,
 *
 *     sum over the arms that m' moves of E[N_a] d(m_a, m'_a) >= c.                                                (*)
 *
 * This is Kaufmann, Cappe and Garivier, "On the Complexity of Best-Arm Identification in Multi-Armed Bandit Models"
 * (2016), lemma 1, with d in place of kl, by the coupling of Azize, Wu, Honda, Orabona, Ito and Basu, "Optimal Regret
 * of Bandits under Differential Privacy" (2025). Only (*) is about privacy; what follows chooses means m'.
 *
 * sum   One arm moves: E[N_a] >= c/d(m_a, m'_a). Alone, an arm keeps the ranking in an interval around its mean, so the
 *       least d is that of an end of the interval. No mean leaves [0,1]: an arm that can go anywhere adds 0.
 *       With the arms of a class in order, L its best, S its second, Z its worst other than a, P the best arm of the
 *       class before, N of the class after, the interval ends
 *           above  at Z + alpha (a leads, Z drops out) or at P - alpha (a joins the class before), the lower one
 *           below  at L - alpha (a drops out) if a is not L. L itself: at N + alpha (N joins) if that is at least S or
 *                  there is no S, else at S - alpha (S leads, and a drops out)
 * pair  Two arms i and j move to means at which neither d exceeds V: E[N_i] + E[N_j] >= c/V. Disjoint sets of arms have
 *       disjoint tokens, so the bounds of disjoint pairs and of the arms left over add up. A pair counts by the larger
 *       of c/V and its two arms' terms of the sum, so this bound is never below `sum`. Where d is quadratic it is up to
 *       twice as large, since two arms that each move half the way cost a quarter each; where the ends of [0,1] stop
 *       an arm that moves alone, it can be larger yet. The ranking changes if
 *           i, j of one class      end more than alpha apart: a class is never wider
 *           j = L of a class, i of the next      i ends at max(j, S) - alpha or above, and j at m_i + alpha or above
 *                  (so above N). Then a class before has changed, or the best arm left is i, j or S, and takes i into
 *                  its class, which i was not in
 *       The least V is that of means where both d are equal, since one rises as the other falls, or of an end of their
 *       range. By the minimax theorem it is max over w of min over the means of w d_i + (1 - w) d_j: no other use of
 *       these means gives more. Pairs are chosen greedily by what they add, among: L of a class with each arm of its
 *       class and of the next. Any choice is valid; pairs of all arms of a class would add some thousandths.
 *
 * Ties: if two arms lie where a class begins or ends, exactly alpha apart (alpha = 0: equal), the ranking changes at no
 * distance. Both bounds are then infinite: no algorithm ends.
 *
 * Behind a privatizer that sends bits, tokens are 0-or-1 with mean g(m), and all that is said above holds for them:
 * d(g(m_a), g(m'_a)) in place of d(m_a, m'_a). The bound is then that of rankings behind this privatizer.
 */
#ifndef CV_PREPARE_BOUND_H
#define CV_PREPARE_BOUND_H

#include <math.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/local.h"

struct cv_bound_ask {
  uint32_t arms;
  const double *mean;                 /* of each arm's scores, in [0,1] */
  const struct cv_feedback *feedback; /* g of each arm: slope 1 and offset 0 if a token is the score */
  double alpha, delta;                /* alpha >= 0; 0 < delta < 1/2 */
  double epsilon;                     /* of a token, > 0; infinite: no privacy */
};

/* Tokens of all arms together. 0: nothing has to be found out. Infinite: there is a tie. */
struct cv_bound {
  double sum, pair;
};

/* How many times the bound `tokens` are. NAN for an infinite bound, or 0. */
static inline double cv_bound_ratio(uint64_t tokens, double bound) {
  return isfinite(bound) && bound > 0 ? (double)tokens / bound : (double)NAN;
}

/* Takes O(K log K) and the time of cv_truth_classes(). CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_bound_find(const struct cv_bound_ask *ask, struct cv_bound *ret);
/* How far each mean lies from the nearest one at which the ranking at `alpha` changes, if its arm alone moves within
 * [0,1]: an end of the interval above. Infinite: there is none. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_bound_distances(const double *mean, uint32_t arms, double alpha, double *ret_distance);

#endif
