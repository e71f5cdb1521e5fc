/* SPDX-License-Identifier: Apache-2.0 */
/* A measure defines what an experiment runs and which metrics it gives: one file and one row of measures.h each. */
#ifndef CV_LAB_MEASURE_H
#define CV_LAB_MEASURE_H

#include "lab/experiment/experiment.h"
#include "prepare/prepare.h"
#include "simulate/game.h"

/* A piece of work: one replicate of one setting. All series of a piece have the same instance, and the same scores as
 * far as they ask for the same ones: comparisons between them are paired. */
struct cv_lab_piece {
  const struct cv_lab_experiment *experiment;
  size_t setting;
  uint64_t replicate;
  uint64_t seed;        /* of the replicate: the same for all settings and series */
  bool token_level;     /* draw every token separately, as workers do, instead of sums */
  struct cv_game *game; /* shared by the piece's series; cv_lab_piece_run() sets it */
};

enum { CV_LAB_MEASURE_METRICS_MAX = 24 };

struct cv_lab_measure {
  const char *name;
  const char *const *metrics; /* NULL-terminated; at most CV_LAB_MEASURE_METRICS_MAX */
  /* By metric, the width of the range of its values, which no difference exceeds; 0: unbounded. NULL: all are. */
  const double *ranges;
  /* Whether a campaign with this policy has metric number `metric`; NULL: every policy has all metrics. */
  bool (*has)(const struct cv_policy_class *policy, size_t metric);
  /* Checks further requirements, for every campaign before anything runs. One line. NULL: none. */
  enum cv_err (*fits)(const struct cv_lab_experiment *experiment, const struct cv_prepared *campaign,
                      struct cv_why *why);
  /* Runs one series. Sets ret_values[point of the setting][metric of the measure], initially NAN, where there is a
   * value. One line. */
  enum cv_err (*run)(const struct cv_lab_piece *piece, size_t series, double *ret_values, struct cv_why *why);
};

#endif
