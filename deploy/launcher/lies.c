/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/lies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "thirdparty/policy/tail.h"
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

static uint64_t less(uint64_t lies, uint64_t told) {
  return !cv_lies_is_number(lies) ? lies : lies > told ? lies - told : 0;
}

/* What is left of numbers of lies when so many are told. */
static struct cv_policy_lies left_of(struct cv_policy_lies lies, uint64_t told) {
  return (struct cv_policy_lies){.safe = less(lies.safe, told), .turn = less(lies.turn, told)};
}

/* The sum of all noisy numbers is off by as many Laplaces. */
static enum cv_err take_neutral(const struct cv_export *export, struct cv_lies *ret) {
  static const double FAILS = .001;
  if (export->neutrals != ret->arms || export->neutral_epsilon_micro == 0) {
    return CV_OK;
  }
  ret->neutral = calloc(ret->arms, sizeof(*ret->neutral));
  if (ret->neutral == NULL) {
    return CV_ERR_NOMEM;
  }
  memcpy(ret->neutral, export->neutral, ret->arms * sizeof(*ret->neutral));
  double unit = (double)CV_MICRO / (double)export->neutral_epsilon_micro, sum = 0;
  struct cv_noise noise = {.groups = 1, .group = {{.scale = 1, .count = ret->arms}}};
  for (uint32_t i = 0; i < ret->arms; i++) {
    sum += (double)ret->neutral[i];
  }
  ret->neutral_most = (uint64_t)fmax(ceil(sum + cv_tail_quantile(&noise, 2 * FAILS) * unit), 0);
  noise.group[0].count = 1;
  ret->neutral_radius = ceil(cv_tail_quantile(&noise, FAILS) * unit);
  return CV_OK;
}

static bool is_any_known(const struct cv_policy_lies *lies, uint32_t arms) {
  for (uint32_t i = 0; i < arms; i++) {
    if (lies[i].safe != 0) {
      return true;
    }
  }
  return false;
}

enum cv_err cv_lies_of(const struct cv_export *export, struct cv_lies *ret) {
  *ret = (struct cv_lies){.arms = export->spec.arms, .tokens_per_worker = export->spec.tokens_per_worker};
  CV_TRY(take_neutral(export, ret));
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
    ret->least = left_of(least_of(lies, ret->arms), ret->neutral_most);
    if (!is_any_known(lies, ret->arms)) {
      (void)cv_fail(&ret->unknown, CV_ERR_INVALID, "every class depends on items that are parked or undecided");
    }
    for (uint32_t i = 0; i < ret->arms; i++) {
      lies[i] = left_of(lies[i], ret->neutral_most);
    }
    return CV_OK;
  }
  free(lies);
  free(need);
  return err == CV_ERR_NOMEM ? CV_ERR_NOMEM : CV_OK;
}

void cv_lies_fini(struct cv_lies *lies) {
  free(lies->of_arm);
  free(lies->need);
  free(lies->neutral);
  *lies = (struct cv_lies){0};
}

bool cv_lies_is_number(uint64_t lies) {
  return lies != 0 && lies != CV_LIES_NEVER;
}

uint64_t cv_lies_workers(const struct cv_lies *lies, uint64_t tokens) {
  return tokens / lies->tokens_per_worker + (tokens % lies->tokens_per_worker > 0);
}
