/* SPDX-License-Identifier: Apache-2.0 */
/* What an experiment runs, and which numbers that gives: one file and one row of the table each. */
#ifndef CV_LAB_MEASURE_H
#define CV_LAB_MEASURE_H

#include "deploy/launcher/prepare.h"
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
  /* Whether campaigns of this policy have the metric, by its index; NULL: any policy has all. */
  bool (*has)(const struct cv_policy_class *policy, size_t metric);
  /* What it needs besides; of every campaign before anything runs. One line. NULL: nothing. */
  enum cv_err (*fits)(const struct cv_lab_experiment *experiment, const struct cv_prepared *campaign,
                      struct cv_why *why);
  /* One series; ret_values [point of the setting][metric of the measure], NAN where a run has no such number. */
  enum cv_err (*run)(const struct cv_lab_piece *piece, size_t series, double *ret_values, struct cv_why *why);
};

/* By name, NULL if there is none; and by index, NULL past the end. */
const struct cv_lab_measure *cv_lab_measure_find(const char *name);
const struct cv_lab_measure *cv_lab_measure_at(size_t index);

/*
 * Whether a series can be measured with this campaign of its: the policy has every metric of the experiment, and the
 * measure what it needs. One line, with the place of the metric in the file.
 */
CV_MUST_USE enum cv_err cv_lab_measure_check(const struct cv_lab_experiment *experiment, size_t series,
                                             const struct cv_prepared *campaign, struct cv_why *why);

/* The seed of a replicate. */
uint64_t cv_lab_replicate_seed(uint64_t seed, uint64_t replicate);
/* All series of a piece: cv_lab_piece_values() numbers, as cv_lab_dataset_put() takes them. */
CV_MUST_USE enum cv_err cv_lab_piece_run(const struct cv_lab_piece *piece, double *ret_values, struct cv_why *why);

#endif
