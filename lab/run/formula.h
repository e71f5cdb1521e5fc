/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a figure that are computed from the campaign instead of run: one row of the table each. */
#ifndef CV_LAB_FORMULA_H
#define CV_LAB_FORMULA_H

#include "lab/experiment/experiment.h"

struct cv_prepared;

/*
 *   corrupt-lower-bound  regret: the sum over all arms a but the best of Delta_a ln T/d(lambda_a, g_a(mu*)), the
 *                        asymptotic lower bound for uniformly efficient policies with corrupted feedback (Gajane, Urvoy
 *                        and Kaufmann, "Corrupt Bandits", 2016, Theorem 1). T is the number of pulls. An arm whose
 *                        g_a(mu*) is outside [0, 1] adds 0.
 *   klucb-cf-main-term   regret: the same with f(T) = ln T + 3 ln ln T in place of ln T: what KLUCB-CF explores at a
 *                        finite T, since its index has f (Theorem 2; the same for large T). f = ln T for T below e
 *   ucb-cf-order         regret: the sum over all arms a but the best of Delta_a ln T/(g_a(mu_a) - g_a(mu*))^2, to
 *                        which the regret of UCB-CF is in proportion at most (Theorem 3)
 *   leakage-bound        leakage-worst: epsilon tanh(epsilon/2), the largest Kullback-Leibler divergence of two laws
 *                        whose ratio lies between exp(-epsilon) and exp(epsilon). Two outcomes attain it
 *   ppar-cost            pulls: most tokens of PPAR by its Theorem 5.1 (ppar_bound.h)
 *   ppar-success         correct: least probability of a correct ranking, Theorem 5.1
 *   ppar-noise           noise: largest root mean square that the tail of Lemma 5.2 allows
 *   exp3-tau-bound, gap-bound, gap-bound-of-run
 *                        regret: upper bounds (bounds.h)
 *   declared-noise       noise: the standard deviation of the noise in an arm's mean after x releases, as the mechanism
 *                        declares it
 *   declared-noise-so-far
 *                        noise: the root mean square of the noise in releases 1 to x, over the items of the x-th
 */
struct cv_lab_formula {
  const char *name, *metric; /* the metric whose line it is */
  bool is_asymptotic;        /* a limit or an order for x without end; a run of finite length may be on either side */
  /* Checks that the formula is defined for the campaign up to x; CV_ERR_INVALID with the reason. */
  enum cv_err (*fits)(const struct cv_prepared *prepared, double x, struct cv_why *why);
  /* The value at `x`: a moment of the run, or the campaign's limit of tokens if each point is a separate setting. */
  double (*value)(const struct cv_prepared *prepared, double x);
};

/* Reads a formula's name, borrowed from the node. One line with line and column if it is unknown. */
CV_MUST_USE enum cv_err cv_lab_formula_read(const struct cv_yaml *yaml, const yaml_node_t *node, const char **ret,
                                            struct cv_why *why);
/* True if the formula of that name is asymptotic; false for NULL. */
bool cv_lab_formula_is_asymptotic(const char *name);
/* Checks that each formula is defined for its series' campaigns, and that the experiment has its metric. One line. */
CV_MUST_USE enum cv_err cv_lab_formulas_check(const struct cv_lab_experiment *experiment, struct cv_why *why);
/* The value of a series with a formula, at a point; NAN for a metric that is not the formula's. */
CV_MUST_USE enum cv_err cv_lab_formula_value(const struct cv_lab_experiment *experiment, size_t series, size_t point,
                                             size_t metric, double *ret);

#endif
