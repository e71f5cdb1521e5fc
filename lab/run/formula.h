/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a figure that are calculated from the campaign: one row of the table each. */
#ifndef CV_LAB_FORMULA_H
#define CV_LAB_FORMULA_H

#include "lab/experiment/experiment.h"

struct cv_prepared;

/*
 *   corrupt-lower-bound  regret: the sum over the arms a that are not the best of Delta_a ln T/d(lambda_a, g_a(mu*)),
 *                        which no good policy for corrupted feedback can stay below as T grows (Gajane, Urvoy and
 *                        Kaufmann, "Corrupt Bandits", 2016, Theorem 1). T is the number of pulls. Where g_a reaches
 *                        mu* at no token mean in [0, 1], the arm adds nothing.
 *   declared-noise       noise: the standard deviation of the noise in an arm's mean after so many releases, by the
 *                        noise that the mechanism declares for a release.
 */
struct cv_lab_formula {
  const char *name, *metric; /* the metric whose line it is */
  /* Whether the campaign has what it needs up to x; CV_ERR_INVALID with the reason. */
  enum cv_err (*fits)(const struct cv_prepared *prepared, double x, struct cv_why *why);
  /* `x` is the moment of a run, or at a point that is a setting of its own the campaign's limit of tokens. */
  double (*value)(const struct cv_prepared *prepared, double x);
};

/* The name of one; borrowed from the node. One line with line and column if it is none. */
CV_MUST_USE enum cv_err cv_lab_formula_read(const struct cv_yaml *yaml, const yaml_node_t *node, const char **ret,
                                            struct cv_why *why);
/* Each series with a formula has a campaign that can have it, and the experiment its metric. One line. */
CV_MUST_USE enum cv_err cv_lab_formulas_check(const struct cv_lab_experiment *experiment, struct cv_why *why);
/* Of a series with a formula. NAN at a metric that is not the formula's. */
CV_MUST_USE enum cv_err cv_lab_formula_value(const struct cv_lab_experiment *experiment, size_t series, size_t point,
                                             size_t metric, double *ret);

#endif
