/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/ppar_bound.h"

#include <math.h>

#include "common/base/grid.h"
#include "common/campaign/accuracy.h"
#include "lab/run/measures.h"

static double number(const struct cv_prepared *campaign, const char *key) {
  return cv_params_number(&campaign->file.spec.policy.params, key);
}

/* Classes as in cv_truth_classes(): each begins with the best arm below the segmentation point before it. */
static double least_distance(const struct cv_prepared *campaign) {
  double least = (double)INFINITY, point = (double)INFINITY, alpha = number(campaign, "alpha");
  for (;;) {
    double best = -(double)INFINITY;
    for (uint32_t i = 0; i < campaign->file.spec.arms; i++) {
      best = campaign->truth[i] < point ? fmax(best, campaign->truth[i]) : best;
    }
    if (isinf(best)) {
      return least;
    }
    point = best - alpha;
    for (uint32_t i = 0; i < campaign->file.spec.arms; i++) {
      least = fmin(least, fabs(campaign->truth[i] - point));
    }
  }
}

/* An arm's tokens until it is ranked: 72 ln(4K/delta)/D^2. */
static double tokens_of_arm(const struct cv_prepared *campaign) {
  double distance = least_distance(campaign);
  return 72 * log(4.0 * campaign->file.spec.arms / number(campaign, "delta")) / (distance * distance);
}

enum cv_err cv_lab_ppar_fits(const struct cv_prepared *campaign, double x, struct cv_why *why) {
  const struct cv_spec *spec = &campaign->file.spec;
  (void)x;
  if (!cv_lab_has_classes(cv_policy_find(spec->policy.name)) || cv_params_find(&spec->policy.params, "delta") == NULL ||
      cv_params_find(&spec->policy.params, "tokens_per_round") == NULL) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s; expected a ranking with alpha, delta and tokens_per_round",
                   spec->policy.name);
  }
  if (campaign->file.items.source != CV_SOURCE_GIVEN) {
    return cv_fail(why, CV_ERR_INVALID, "it needs items with given means; expected items.list or items.ladder");
  }
  if (!(least_distance(campaign) > 1e-9)) {
    return cv_fail(why, CV_ERR_INVALID, "a mean is alpha below the best of a class; expected a distance from there");
  }
  return CV_OK;
}

double cv_lab_ppar_cost(const struct cv_prepared *campaign, double x) {
  (void)x;
  return campaign->file.spec.arms * tokens_of_arm(campaign);
}

double cv_lab_ppar_success(const struct cv_prepared *campaign, double x) {
  (void)x;
  double classes = cv_accuracy_classes(campaign->file.spec.arms, number(campaign, "alpha"));
  double rounds = ceil(tokens_of_arm(campaign) / number(campaign, "tokens_per_round"));
  return pow(1 - number(campaign, "delta"), classes * rounds);
}

enum cv_err cv_lab_ppar_noise_fits(const struct cv_prepared *campaign, double n, struct cv_why *why) {
  (void)n;
  return campaign->file.spec.epsilon_micro > 0
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "the campaign has no epsilon; expected privacy.epsilon");
}

double cv_lab_ppar_noise(const struct cv_prepared *campaign, double n) {
  double epsilon = (double)campaign->file.spec.epsilon_micro / CV_MICRO, ln2 = log(2);
  return 2 * sqrt(2) * (log(n) + 1) / (n * epsilon) * sqrt(ln2 * ln2 + 2 * ln2 + 2);
}
