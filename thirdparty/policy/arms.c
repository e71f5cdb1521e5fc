/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/arms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/mechanisms.h"
#include "thirdparty/policy/tail.h"

/* Limit of tokens per arm: far above any campaign's limit, and the sum over all arms fits in 64 bits. */
#define TOKENS_END (UINT64_C(1) << 48)

enum cv_err cv_arms_init(const struct cv_spec *spec, uint64_t seed, struct cv_arms *ret) {
  struct cv_local law;
  if (cv_local_init(&spec->privatizer, spec->arms, &law, NULL) != CV_OK) {
    return CV_ERR_INVALID;
  }
  struct cv_arms_sum *arm = calloc(spec->arms, sizeof(*arm));
  if (arm == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < spec->arms; i++) {
    arm[i].feedback = cv_local_feedback(&law, i);
  }
  double horizon = cv_params_number(&spec->policy.params, "horizon");
  *ret = (struct cv_arms){.arms = spec->arms,
                          .floor = cv_spec_release_tokens(spec),
                          .horizon = horizon > 0 ? (uint64_t)horizon : spec->tokens,
                          .stream = cv_rng_branch(cv_rng_root(seed), 0, CV_RNG_POLICY),
                          .law = law,
                          .arm = arm};
  return CV_OK;
}

void cv_arms_fini(struct cv_arms *arms) {
  free(arms->arm);
}

uint64_t cv_arms_apply(struct cv_arms *arms, const struct cv_release *release, double *ret_sum) {
  CV_REQUIRE(release->arm < arms->arms && release->tokens > 0);
  struct cv_arms_sum *arm = &arms->arm[release->arm];
  /* A broker is untrusted: ignore a count that does not grow or is out of range. */
  if (release->tokens <= arm->tokens || release->tokens >= TOKENS_END) {
    *ret_sum = 0;
    return 0;
  }
  uint64_t fresh = release->tokens - arm->tokens;
  *ret_sum = (double)(int64_t)((uint64_t)release->noisy_sum - (uint64_t)arm->sum) / (double)CV_GRID;
  arms->pulls += fresh;
  arm->tokens = release->tokens;
  arm->sum = release->noisy_sum;
  return fresh;
}

double cv_arms_mean(const struct cv_arms *arms, uint32_t arm) {
  const struct cv_arms_sum *at = &arms->arm[arm];
  double mean = (double)at->sum / (double)CV_GRID / (double)at->tokens;
  return at->feedback.scale > 0 ? mean : fmin(1, fmax(0, mean));
}

uint64_t cv_arms_left(const struct cv_arms *arms) {
  uint64_t left = arms->pulls < arms->horizon ? arms->horizon - arms->pulls : 0;
  return left < arms->floor ? 0 : left;
}

void cv_arms_standing(const struct cv_arms *arms, uint32_t i, struct cv_standing *ret) {
  static const struct cv_noise silence = {0};
  CV_REQUIRE(i < arms->arms);
  const struct cv_arms_sum *arm = &arms->arm[i];
  /* Without a release: the interval [0,1]. */
  *ret = (struct cv_standing){.arm = i, .tokens = arm->tokens, .mean = 0.5, .radius = 0.5};
  if (arm->tokens > 0) {
    double n = (double)arm->tokens,
           tail = cv_tail_in_scores(&silence, CV_TAIL_ONE, 0, arm->feedback.scale, arm->tokens, 0.05);
    ret->mean = cv_feedback_score(arm->feedback, cv_arms_mean(arms, i));
    double scores = sqrt(log(40) / (2 * n));
    ret->radius = (scores + tail / n) / fabs(arm->feedback.slope);
    ret->noise = ret->radius - scores;
  }
}

void cv_arms_save(const struct cv_arms *arms, struct cv_buf *out) {
  cv_buf_put_u32(out, arms->arms);
  for (uint32_t i = 0; i < arms->arms; i++) {
    cv_buf_put_u64(out, arms->arm[i].tokens);
    cv_buf_put_u64(out, (uint64_t)arms->arm[i].sum);
  }
}

enum cv_err cv_arms_load(struct cv_arms *arms, struct cv_reader *in) {
  if (cv_read_u32(in) != arms->arms) {
    return CV_ERR_DAMAGED;
  }
  arms->pulls = 0;
  for (uint32_t i = 0; i < arms->arms; i++) {
    struct cv_arms_sum *arm = &arms->arm[i];
    arm->tokens = cv_read_u64(in);
    arm->sum = (int64_t)cv_read_u64(in);
    if (arm->tokens >= TOKENS_END || (arm->tokens == 0 && arm->sum != 0)) {
      return CV_ERR_DAMAGED;
    }
    arms->pulls += arm->tokens;
  }
  return in->failed ? CV_ERR_DAMAGED : CV_OK;
}

void cv_arms_stream(const struct cv_arms *arms, uint64_t plan, struct cv_rng_seeded *ret) {
  cv_rng_seeded_at(ret, cv_rng_branch(cv_rng_branch(arms->stream, 1, plan), 2, 0));
}

void cv_arms_want(const struct cv_arms *arms, uint32_t arm, uint32_t tokens, struct cv_policy_step *step) {
  uint64_t left = cv_arms_left(arms);
  step->want[step->wants++] = (struct cv_want){.arm = arm, .tokens = tokens < left ? tokens : (uint32_t)left};
}

enum cv_err cv_arms_fit(const struct cv_spec *spec, unsigned privatizers, struct cv_why *why) {
  struct cv_local law;
  CV_TRY(cv_local_init(&spec->privatizer, spec->arms, &law, why));
  if (((privatizers >> law.kind) & 1) == 0) {
    char names[96] = "";
    for (unsigned kind = 0; kind < CV_LOCAL_KINDS; kind++) {
      size_t used = strlen(names);
      if (((privatizers >> kind) & 1) != 0) {
        (void)snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? " or " : "",
                       cv_local_name((enum cv_local_kind)kind));
      }
    }
    return cv_fail(why, CV_ERR_INVALID, "policy %s cannot work with privatizer %s; expected %s", spec->policy.name,
                   spec->privatizer.name, names);
  }
  if (!cv_traits_exact_sums(cv_traits_of(spec->mechanism.name))) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s needs the exact sum of each pull; expected mechanism %s, not %s",
                   spec->policy.name, cv_traits_list(cv_traits_exact_sums).text, spec->mechanism.name);
  }
  return CV_OK;
}
