/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/consider.h"

#include <string.h>

#include "common/base/local.h"
#include "worker/campaign.h"

const struct cv_work *cv_works_find(const struct cv_worker_config *config, const char *name) {
  for (size_t i = 0; i < config->works; i++) {
    if (strcmp(config->work[i].campaign, name) == 0) {
      return &config->work[i];
    }
  }
  return NULL;
}

/* A score must mean the same at every gateway, and a range that follows from the rows would tell of single ones. */
static enum cv_err check_scale(const struct cv_work *work, const struct cv_terms *terms, struct cv_why *why) {
  bool is_declared = cv_scale_is_declared(&work->scale), is_asked = cv_scale_is_declared(&terms->scale);
  if (work->print == 0) {
    return CV_OK;
  }
  if (!is_declared && (is_asked || !cv_choices_are_exact(&terms->mechanism, &terms->privatizer))) {
    return cv_fail(why, CV_ERR_DENIED, "the worker's campaign file has no items.scale; expected that of the campaign");
  }
  return !is_asked || cv_scale_is_same(&work->scale, &terms->scale)
             ? CV_OK
             : cv_fail(why, CV_ERR_DENIED,
                       "the campaign's scale is %.10g to %.10g; expected %.10g to %.10g, as in the worker's campaign "
                       "file",
                       terms->scale.low, terms->scale.high, work->scale.low, work->scale.high);
}

enum cv_err cv_work_consider(const struct cv_worker_config *config, const struct cv_work *work,
                             const struct cv_terms *terms, bool *met, struct cv_privatizer **ret, struct cv_why *why) {
  if (work == NULL) {
    /* Not for which it has: the requester of this campaign reads the reason, and the others are not its own. */
    return cv_fail(why, CV_ERR_DENIED, "this worker has no scores for the campaign");
  }
  CV_TRY(cv_accept_requester(&config->accept, terms->requester, why));
  /* A campaign of the same name from a requester that is not accepted must not end the wait for the right one. */
  met[work - config->work] = true;
  if (terms->arms != work->arms) {
    return cv_fail(why, CV_ERR_DENIED, "the campaign has %u arms; expected %u, as in the worker's scores", terms->arms,
                   work->arms);
  }
  if (terms->pairs != work->pairs) {
    return cv_fail(why, CV_ERR_DENIED, "the campaign asks for %s; expected %s, as in the worker's scores",
                   terms->pairs ? "comparisons of pairs" : "scores", work->pairs ? "comparisons of pairs" : "scores");
  }
  CV_TRY(check_scale(work, terms, why));
  if (work->is_drawn && cv_local_find(terms->privatizer.name) != CV_LOCAL_NONE) {
    return cv_fail(
        why, CV_ERR_DENIED,
        "the campaign has privatizer %s, and the worker draws rows with replacement; expected none, since each "
        "use of a row would randomize it anew",
        terms->privatizer.name);
  }
  if (terms->tokens_per_worker == 0 || terms->tokens_per_worker == CV_GIVEN_NEVER) {
    return cv_fail(why, CV_ERR_DENIED, "%u tokens per worker; expected 1 to %u", terms->tokens_per_worker,
                   CV_GIVEN_NEVER - 1);
  }
  return cv_accept_terms(&config->accept, terms, ret, why);
}
