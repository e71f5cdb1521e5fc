/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "lab/experiment/campaigns.h"
#include "lab/judge/statistic.h"
#include "lab/run/measures.h"
#include "prepare/prepare.h"

static const char *const metrics[] = {"quality", NULL};
static const double ranges[] = {1};

static enum cv_err list(const struct cv_lab_piece *piece, const struct cv_prepared *campaign, double *ret_values) {
  uint32_t arms = campaign->file.spec.arms;
  double *ascending = calloc(arms, sizeof(*ascending));
  if (ascending == NULL) {
    return CV_ERR_NOMEM;
  }
  memcpy(ascending, campaign->truth, arms * sizeof(*ascending));
  cv_lab_sort(ascending, arms);
  for (size_t i = 0; i < piece->experiment->points; i++) {
    if (piece->experiment->x[i] <= arms) {
      ret_values[i] = ascending[arms - (uint32_t)piece->experiment->x[i]];
    }
  }
  free(ascending);
  return CV_OK;
}

static enum cv_err run(const struct cv_lab_piece *piece, size_t series, double *ret_values, struct cv_why *why) {
  struct cv_prepared campaign;
  CV_TRY(cv_lab_prepare(piece->experiment, series, piece->setting, piece->seed, &campaign, why));
  enum cv_err err = list(piece, &campaign, ret_values);
  cv_prepared_fini(&campaign);
  return err;
}

static enum cv_err fits(const struct cv_lab_experiment *experiment, const struct cv_prepared *campaign,
                        struct cv_why *why) {
  if (experiment->axis != CV_LAB_AXIS_PULLS || campaign->truth == NULL) {
    return cv_fail(why, CV_ERR_INVALID, "%s: measure qualities needs x: {pulls: [...]}, the ranks, and means",
                   experiment->path);
  }
  return CV_OK;
}

const struct cv_lab_measure cv_lab_measure_qualities = {
    .name = "qualities", .metrics = metrics, .ranges = ranges, .fits = fits, .run = run};
