/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/campaign/accuracy.h"
#include "lab/experiment/campaigns.h"
#include "lab/run/measures.h"
#include "prepare/prepare.h"
#include "simulate/trial.h"
#include "worker/quality/truth.h"

static const char *const metrics[] = {"ppar-accuracy", NULL};
static const double ranges[] = {1};

bool cv_lab_policy_has(const struct cv_policy_class *policy, const char *key) {
  for (size_t i = 0; i < policy->rule_count; i++) {
    if (strcmp(policy->rules[i].key, key) == 0) {
      return true;
    }
  }
  return false;
}

bool cv_lab_has_classes(const struct cv_policy_class *policy) {
  return policy->kind == CV_POLICY_RANKING && cv_lab_policy_has(policy, "alpha");
}

static bool has(const struct cv_policy_class *policy, size_t metric) {
  (void)metric;
  return cv_lab_has_classes(policy) && !policy->duels;
}

static enum cv_err judge(const struct cv_lab_piece *piece, const struct cv_prepared *campaign,
                         const struct cv_standing *standing, double *ret_values) {
  uint32_t arms = campaign->file.spec.arms;
  double alpha = cv_params_number(&campaign->file.spec.policy.params, "alpha");
  uint32_t *truth = calloc(arms, sizeof(*truth));
  if (truth == NULL) {
    return CV_ERR_NOMEM;
  }
  (void)cv_truth_classes(campaign->truth, arms, alpha, truth);
  for (size_t i = 0; i < piece->experiment->points; i++) {
    bool is_filled;
    if (piece->experiment->x[i] <= cv_accuracy_classes(arms, alpha)) {
      ret_values[i] = cv_accuracy_of_class(truth, standing, arms, (uint32_t)piece->experiment->x[i], &is_filled);
    }
  }
  free(truth);
  return CV_OK;
}

static enum cv_err run(const struct cv_lab_piece *piece, size_t series, double *ret_values, struct cv_why *why) {
  struct cv_prepared campaign;
  CV_TRY(cv_lab_prepare(piece->experiment, series, piece->setting, piece->seed, &campaign, why));
  struct cv_trial trial = {.campaign = &campaign, .seed = piece->seed, .token_level = piece->token_level};
  enum cv_err err = cv_trial_run(&trial, why);
  if (err == CV_OK) {
    err = judge(piece, &campaign, trial.standing, ret_values);
  }
  cv_trial_fini(&trial);
  cv_prepared_fini(&campaign);
  return err;
}

static enum cv_err fits(const struct cv_lab_experiment *experiment, const struct cv_prepared *campaign,
                        struct cv_why *why) {
  if (experiment->axis != CV_LAB_AXIS_PULLS || campaign->truth == NULL) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: measure classes needs x: {pulls: [...]}, the numbers of classes, and no adversary",
                   experiment->path);
  }
  return CV_OK;
}

const struct cv_lab_measure cv_lab_measure_classes = {
    .name = "classes", .metrics = metrics, .ranges = ranges, .has = has, .fits = fits, .run = run};
