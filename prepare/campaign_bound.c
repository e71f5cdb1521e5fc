/* SPDX-License-Identifier: Apache-2.0 */
#include "prepare/campaign_bound.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/grid.h"

/* Tokens must be 0 or 1: bits, or scores that are sent as they are. */
static enum cv_err fits(const struct cv_prepared *campaign, const struct cv_local *local, struct cv_why *why) {
  const struct cv_spec *spec = &campaign->file.spec;
  const struct cv_param *alpha = cv_params_find(&spec->policy.params, "alpha");
  const struct cv_param *delta = cv_params_find(&spec->policy.params, "delta");
  const struct cv_items_law *law = cv_items_law(&campaign->file.items);
  if (campaign->kind != CV_POLICY_RANKING || alpha == NULL || delta == NULL) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s has no lower bound; expected a ranking with alpha and delta",
                   spec->policy.name);
  }
  if (!(delta->number > 0 && delta->number < 0.5)) {
    return cv_fail(why, CV_ERR_INVALID, "policy.delta is %g; the lower bound needs one between 0 and 0.5",
                   delta->number);
  }
  if (law == NULL || campaign->truth == NULL) {
    return cv_fail(why, CV_ERR_INVALID,
                   "the lower bound needs scores that are drawn independently; expected items "
                   "with rewards");
  }
  /* Borda scores are tied to each other, and an algorithm may choose who is compared: the proof allows neither. */
  if (spec->pairs) {
    return cv_fail(why, CV_ERR_INVALID,
                   "the lower bound is one of scores; expected items that are not compared in pairs");
  }
  if (!local->bits && (local->kind != CV_LOCAL_NONE || law->rewards != CV_REWARDS_BERNOULLI)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "the lower bound needs tokens that are 0 or 1; expected rewards: bernoulli "
                   "without a privatizer, or a privatizer that sends bits");
  }
  return CV_OK;
}

enum cv_err cv_bound_of_campaign(const struct cv_prepared *campaign, struct cv_bound *ret, struct cv_why *why) {
  const struct cv_spec *spec = &campaign->file.spec;
  struct cv_local local;
  CV_TRY(cv_local_init(&spec->privatizer, spec->arms, &local, why));
  CV_TRY(fits(campaign, &local, why));
  struct cv_feedback *feedback = calloc(spec->arms, sizeof(*feedback));
  if (feedback == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  for (uint32_t i = 0; i < spec->arms; i++) {
    feedback[i] = cv_local_feedback(&local, i);
  }
  double epsilon = cv_spec_has_noise(spec) ? (double)spec->epsilon_micro / (double)CV_MICRO : (double)INFINITY;
  const struct cv_bound_ask ask = {.arms = spec->arms,
                                   .mean = campaign->truth,
                                   .feedback = feedback,
                                   .alpha = cv_params_number(&spec->policy.params, "alpha"),
                                   .delta = cv_params_number(&spec->policy.params, "delta"),
                                   .epsilon = epsilon};
  enum cv_err err = cv_bound_find(&ask, ret);
  free(feedback);
  return err == CV_OK ? CV_OK : cv_fail(why, err, "%s", cv_err_text(err));
}
