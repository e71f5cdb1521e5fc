/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/lies.h"

#include <stdlib.h>

#include "thirdparty/replay.h"

static enum cv_err replay(const struct cv_export *export, struct cv_policy_lies *lies, double *need,
                          struct cv_why *unknown) {
  struct cv_replay_verdict verdict;
  const struct cv_replay_records records = {.spec = &export->spec,
                                            .seed = export->seed,
                                            .plan = export->plan,
                                            .plans = export->plans,
                                            .release = export->release,
                                            .releases = export->releases,
                                            .end = export->progress.end,
                                            .standing = export->standing,
                                            .standings = export->standings,
                                            .ret_lies = lies,
                                            .ret_need = need};
  CV_TRY(cv_replay_records(&records, &verdict, unknown));
  return verdict.agrees
             ? CV_OK
             : cv_fail(unknown, CV_ERR_INVALID, "the third-party did not follow its policy: %s", verdict.first.text);
}

static void take_less(uint64_t lies, uint64_t *least) {
  *least = lies > 0 && lies < *least ? lies : *least;
}

static struct cv_policy_lies least_of(const struct cv_policy_lies *lies, uint32_t arms) {
  struct cv_policy_lies least = {.safe = CV_LIES_NEVER, .turn = CV_LIES_NEVER};
  for (uint32_t i = 0; i < arms; i++) {
    take_less(lies[i].safe, &least.safe);
    take_less(lies[i].turn, &least.turn);
  }
  return least;
}

enum cv_err cv_lies_of(const struct cv_export *export, struct cv_lies *ret) {
  *ret = (struct cv_lies){.arms = export->spec.arms, .tokens_per_worker = export->spec.tokens_per_worker};
  if (export->releases == 0 && cv_spec_is_exact(&export->spec)) {
    (void)cv_fail(&ret->unknown, CV_ERR_INVALID, "a broker does not export exact sums");
    return CV_OK;
  }
  const struct cv_policy_class *class = cv_policy_find(export->spec.policy.name);
  if (class != NULL && class->kind == CV_POLICY_RANKING && class->ranking == NULL) {
    (void)cv_fail(&ret->unknown, CV_ERR_INVALID, "policy %s does not count them", class->name);
    return CV_OK;
  }
  struct cv_policy_lies *lies = calloc(ret->arms, sizeof(*lies));
  double *need = calloc(ret->arms, sizeof(*need));
  enum cv_err err = lies == NULL || need == NULL ? CV_ERR_NOMEM : replay(export, lies, need, &ret->unknown);
  if (err == CV_OK) {
    ret->of_arm = lies;
    ret->need = need;
    ret->least = least_of(lies, ret->arms);
    return CV_OK;
  }
  free(lies);
  free(need);
  return err == CV_ERR_NOMEM ? CV_ERR_NOMEM : CV_OK;
}

void cv_lies_fini(struct cv_lies *lies) {
  free(lies->of_arm);
  free(lies->need);
  *lies = (struct cv_lies){0};
}

bool cv_lies_is_number(uint64_t lies) {
  return lies != 0 && lies != CV_LIES_NEVER;
}

uint64_t cv_lies_workers(const struct cv_lies *lies, uint64_t tokens) {
  return tokens / lies->tokens_per_worker + (tokens % lies->tokens_per_worker > 0);
}
