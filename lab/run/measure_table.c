/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/measure_table.h"

#include <string.h>

#include "common/base/text.h"
#include "lab/run/measures.h"

static const struct cv_lab_measure *const table[] = {
    &cv_lab_measure_campaign, &cv_lab_measure_noise,   &cv_lab_measure_same_arms,
    &cv_lab_measure_leakage,  &cv_lab_measure_classes, &cv_lab_measure_qualities,
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

/* ---- the metrics that a campaign has ---- */

static bool has_metric(const struct cv_lab_measure *measure, const struct cv_policy_class *policy, size_t metric) {
  return measure->has == NULL || measure->has(policy, metric);
}

/* The message lists the metrics that this policy has: a name may be right for the measure but not for the policy. */
static enum cv_err lacks(const struct cv_lab_experiment *experiment, size_t series,
                         const struct cv_policy_class *policy, size_t place, struct cv_why *why) {
  struct cv_yaml yaml = experiment->yaml;
  const struct cv_lab_measure *measure = experiment->measure;
  const yaml_node_t *section = cv_yaml_find(&yaml, yaml.root, "experiment").value;
  const yaml_node_t *list = cv_yaml_find(&yaml, section, "metrics").value;
  const char *known[CV_LAB_MEASURE_METRICS_MAX];
  size_t n = 0;
  char expected[300] = "another measure";
  for (size_t i = 0; measure->metrics[i] != NULL; i++) {
    if (has_metric(measure, policy, i)) {
      known[n++] = measure->metrics[i];
    }
  }
  if (n > 0) {
    cv_text_either(known, n, expected, sizeof(expected));
  }
  return cv_yaml_fail(&yaml, cv_yaml_item(&yaml, list, place), why,
                      "series \"%s\" has policy %s, which has no metric %s; expected %s", experiment->one[series].name,
                      policy->name, experiment->metric[place].name, expected);
}

/* Only a run of the whole campaign has the noise of two brokers. */
static enum cv_err check_brokers(const struct cv_lab_experiment *experiment, size_t series,
                                 const struct cv_prepared *campaign, struct cv_why *why) {
  return campaign->file.spec.brokers == 0 || experiment->measure == &cv_lab_measure_campaign
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "%s: series \"%s\" has two brokers; expected measure campaign",
                       experiment->path, experiment->one[series].name);
}

enum cv_err cv_lab_measure_check(const struct cv_lab_experiment *experiment, size_t series,
                                 const struct cv_prepared *campaign, struct cv_why *why) {
  const struct cv_policy_class *policy = cv_policy_find(campaign->file.spec.policy.name);
  if (experiment->one[series].formula != NULL) {
    return CV_OK; /* it is calculated, not run */
  }
  CV_TRY(check_brokers(experiment, series, campaign, why));
  for (size_t i = 0; i < experiment->metrics; i++) {
    if (!has_metric(experiment->measure, policy, experiment->metric[i].index)) {
      return lacks(experiment, series, policy, i, why);
    }
  }
  return experiment->measure->fits == NULL ? CV_OK : experiment->measure->fits(experiment, campaign, why);
}
