/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/piece.h"

#include <math.h>

#include "common/base/rng.h"

/* Runs one series, and keeps the metrics that the experiment selects. */
static enum cv_err run_series(const struct cv_lab_piece *piece, size_t series, double *ret_values, struct cv_why *why) {
  const struct cv_lab_experiment *experiment = piece->experiment;
  double all[CV_LAB_POINTS_MAX * CV_LAB_MEASURE_METRICS_MAX];
  size_t points = experiment->points / cv_lab_settings_of(experiment), metrics = 0;
  while (experiment->measure->metrics[metrics] != NULL) {
    metrics++;
  }
  CV_REQUIRE(metrics <= CV_LAB_MEASURE_METRICS_MAX);
  /* A run that ends early, or a formula instead of a run, leaves values missing. */
  for (size_t i = 0; i < points * metrics; i++) {
    all[i] = (double)NAN;
  }
  if (experiment->one[series].formula == NULL) {
    CV_TRY(experiment->measure->run(piece, series, all, why));
  }
  for (size_t i = 0; i < points; i++) {
    for (size_t j = 0; j < experiment->metrics; j++) {
      *ret_values++ = all[i * metrics + experiment->metric[j].index];
    }
  }
  return CV_OK;
}

enum cv_err cv_lab_piece_run(const struct cv_lab_piece *piece, double *ret_values, struct cv_why *why) {
  const struct cv_lab_experiment *experiment = piece->experiment;
  size_t each = cv_lab_piece_values(experiment) / experiment->series;
  struct cv_game game = {0}; /* shared by the series, which mostly play the same game */
  struct cv_lab_piece shared = *piece;
  shared.game = &game;
  enum cv_err err = CV_OK;
  for (size_t series = 0; series < experiment->series && err == CV_OK; series++) {
    err = run_series(&shared, series, ret_values + series * each, why);
  }
  cv_game_fini(&game);
  return err;
}

uint64_t cv_lab_replicate_seed(uint64_t seed, uint64_t replicate) {
  /* Mixed twice, so that neighbouring seeds do not share replicates: seed 1, replicate 1 is not seed 2, replicate 0. */
  return cv_mix64(cv_mix64(seed + UINT64_C(0x9e3779b97f4a7c15)) + replicate);
}
