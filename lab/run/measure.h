/* SPDX-License-Identifier: Apache-2.0 */
/* What an experiment runs, and which numbers that gives: one file and one row of measures.h each. */
#ifndef CV_LAB_MEASURE_H
#define CV_LAB_MEASURE_H

#include "lab/experiment/experiment.h"
#include "lab/run/game.h"
#include "prepare/prepare.h"

/* One replicate of a setting. Series of the same piece see the same instance and, as far as they ask for the same
 * scores, the same scores. */
struct cv_lab_piece {
  const struct cv_lab_experiment *experiment;
  size_t setting;
  uint64_t replicate;
  uint64_t seed;            /* of this replicate: the same for every setting and series */
  bool token_level;         /* draw every token as a worker does, and no sum at once */
  struct cv_lab_game *game; /* of the whole piece; cv_lab_piece_run() sets it */
};

enum { CV_LAB_MEASURE_METRICS_MAX = 16 };

struct cv_lab_measure {
  const char *name;
  const char *const *metrics; /* NULL-terminated; at most CV_LAB_MEASURE_METRICS_MAX */
  /* Whether campaigns of this policy have the metric, by its index; NULL: any policy has all. */
  bool (*has)(const struct cv_policy_class *policy, size_t metric);
  /* What it needs besides; of every campaign before anything runs. One line. NULL: nothing. */
  enum cv_err (*fits)(const struct cv_lab_experiment *experiment, const struct cv_prepared *campaign,
                      struct cv_why *why);
  /* One series; ret_values [point of the setting][metric of the measure], NAN where a run has no such number. */
  enum cv_err (*run)(const struct cv_lab_piece *piece, size_t series, double *ret_values, struct cv_why *why);
};

#endif
