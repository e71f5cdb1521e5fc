/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/measure.h"

#include <math.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/config/value.h"
#include "lab/dataset.h"
#include "lab/measures.h"

enum { METRICS_MOST = 16 };

static const struct cv_lab_measure *const table[] = {
    &cv_lab_measure_campaign,
    &cv_lab_measure_noise,
    &cv_lab_measure_same_arms,
    &cv_lab_measure_leakage,
};

const struct cv_lab_measure *cv_lab_measure_at(size_t index) {
  return index < CV_COUNT(table) ? table[index] : NULL;
}

const struct cv_lab_measure *cv_lab_measure_find(const char *name) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    if (strcmp(table[i]->name, name) == 0) {
      return table[i];
    }
  }
  return NULL;
}

/* ---- what a campaign can be measured by ---- */

static bool has_metric(const struct cv_lab_measure *measure, const struct cv_policy_class *policy, size_t metric) {
  return measure->has == NULL || measure->has(policy, metric);
}

static enum cv_err lacks(const struct cv_lab_experiment *experiment, size_t series,
                         const struct cv_policy_class *policy, size_t place, struct cv_why *why) {
  struct cv_yaml yaml = experiment->yaml;
  const struct cv_lab_measure *measure = experiment->measure;
  const yaml_node_t *section = cv_yaml_find(&yaml, yaml.root, "experiment").value;
  const yaml_node_t *list = cv_yaml_find(&yaml, section, "metrics").value;
  const char *known[METRICS_MOST];
  size_t n = 0;
  char expected[300] = "another measure";
  for (size_t i = 0; measure->metrics[i] != NULL; i++) {
    if (has_metric(measure, policy, i)) {
      known[n++] = measure->metrics[i];
    }
  }
  if (n > 0) {
    cv_value_list(known, n, expected, sizeof(expected));
  }
  return cv_yaml_fail(&yaml, cv_yaml_item(&yaml, list, place), why,
                      "series \"%s\" has policy %s, which has no metric %s; expected %s", experiment->one[series].name,
                      policy->name, cv_lab_metric_name(experiment, place), expected);
}

enum cv_err cv_lab_measure_check(const struct cv_lab_experiment *experiment, size_t series,
                                 const struct cv_prepared *campaign, struct cv_why *why) {
  const struct cv_policy_class *policy = cv_policy_find(campaign->file.spec.policy.name);
  if (experiment->one[series].formula != NULL) {
    return CV_OK; /* it is calculated, not run */
  }
  for (size_t i = 0; i < experiment->metrics; i++) {
    if (!has_metric(experiment->measure, policy, experiment->metric[i])) {
      return lacks(experiment, series, policy, i, why);
    }
  }
  return experiment->measure->fits == NULL ? CV_OK : experiment->measure->fits(experiment, campaign, why);
}

/* ---- a piece ---- */

/* One series, of the measure's metrics those that the experiment asks for. */
static enum cv_err run_series(const struct cv_lab_piece *piece, size_t series, double *ret_values, struct cv_why *why) {
  const struct cv_lab_experiment *experiment = piece->experiment;
  double all[CV_LAB_POINTS_MAX * METRICS_MOST];
  size_t points = experiment->points / cv_lab_settings_of(experiment), metrics = 0;
  while (experiment->measure->metrics[metrics] != NULL) {
    metrics++;
  }
  CV_REQUIRE(metrics <= METRICS_MOST);
  for (size_t i = 0; i < points * metrics; i++) {
    all[i] = (double)NAN;
  }
  if (experiment->one[series].formula == NULL) {
    CV_TRY(experiment->measure->run(piece, series, all, why));
  }
  for (size_t i = 0; i < points; i++) {
    for (size_t j = 0; j < experiment->metrics; j++) {
      *ret_values++ = all[i * metrics + experiment->metric[j]];
    }
  }
  return CV_OK;
}

enum cv_err cv_lab_piece_run(const struct cv_lab_piece *piece, double *ret_values, struct cv_why *why) {
  const struct cv_lab_experiment *experiment = piece->experiment;
  size_t each = cv_lab_piece_values(experiment) / experiment->series;
  struct cv_lab_game game = {0};
  struct cv_lab_piece shared = *piece;
  shared.game = &game;
  enum cv_err err = CV_OK;
  for (size_t series = 0; series < experiment->series && err == CV_OK; series++) {
    err = run_series(&shared, series, ret_values + series * each, why);
  }
  cv_lab_game_fini(&game);
  return err;
}

uint64_t cv_lab_replicate_seed(uint64_t seed, uint64_t replicate) {
  return cv_mix64(cv_mix64(seed + UINT64_C(0x9e3779b97f4a7c15)) + replicate);
}
