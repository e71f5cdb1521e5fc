/* SPDX-License-Identifier: Apache-2.0 */
/* What an experiment runs, and which numbers that gives: one file and one row of the table each. */
#ifndef CV_LAB_MEASURE_H
#define CV_LAB_MEASURE_H

#include "lab/experiment.h"
#include "lab/game.h"

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

struct cv_lab_measure {
  const char *name;
  const char *const *metrics; /* NULL-terminated */
  /* One series; ret_values [point of the setting][metric of the measure], NAN where a run has no such number. */
  enum cv_err (*run)(const struct cv_lab_piece *piece, size_t series, double *ret_values, struct cv_why *why);
};

/* By name, NULL if there is none. */
const struct cv_lab_measure *cv_lab_measure_find(const char *name);

/* The seed of a replicate. */
uint64_t cv_lab_replicate_seed(uint64_t seed, uint64_t replicate);
/* All series of a piece: cv_lab_piece_values() numbers, as cv_lab_dataset_put() takes them. */
CV_MUST_USE enum cv_err cv_lab_piece_run(const struct cv_lab_piece *piece, double *ret_values, struct cv_why *why);

#endif
