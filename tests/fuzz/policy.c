/* SPDX-License-Identifier: Apache-2.0 */
/* A policy's stored state: what loads saves to the same bytes, and makes a step whose plan names known arms. */
#include "thirdparty/policy/policy.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { ARMS = 4 };

static void use(struct cv_policy *policy) {
  struct cv_policy_step step = {0};
  struct cv_standing standing;
  struct cv_release release = {
      .number = 1, .plan = 1, .tokens = 1000, .noisy_sum = 700 << 20, .noise = {.groups = 1, .group = {{2, 1}}}};
  for (uint64_t plan = 2; plan < 5 && !step.done; plan++) {
    cv_policy_apply(policy, &release);
    CV_REQUIRE(cv_policy_step(policy, plan, &step) == CV_OK);
    CV_REQUIRE(step.done || step.wants > 0);
    for (size_t i = 0; i < step.wants; i++) {
      CV_REQUIRE(step.want[i].arm < ARMS && step.want[i].tokens > 0);
    }
    release.tokens += 1000;
  }
  for (uint32_t i = 0; i < ARMS; i++) {
    cv_policy_standing(policy, i, &standing);
    CV_REQUIRE(standing.arm == i);
  }
  cv_policy_step_fini(&step);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct cv_spec spec = {.name = "fuzz",
                         .arms = ARMS,
                         .epsilon_micro = 250000,
                         .tokens_per_worker = 1,
                         .tokens = 1 << 30,
                         .policy = {.name = "ppar"},
                         .mechanism = {.name = "hybrid"},
                         .privatizer = {.name = "none"}};
  const struct cv_param *bad;
  struct cv_policy *policy;
  struct cv_why why;
  CV_REQUIRE(cv_params_set_number(&spec.policy.params, "tokens_per_round", 1000) == CV_OK);
  CV_REQUIRE(cv_params_set_number(&spec.policy.params, "alpha", 0.1) == CV_OK);
  CV_REQUIRE(cv_policy_check(&spec.policy, &bad, &why) == CV_OK);
  CV_REQUIRE(cv_policy_new(&spec, 1, &policy) == CV_OK);
  struct cv_reader in = cv_reader_over(bytes, n);
  if (cv_policy_load(policy, &in) == CV_OK) {
    struct cv_buf out = {0};
    cv_policy_save(policy, &out);
    CV_REQUIRE(out.len == n);
    cv_buf_fini(&out);
    use(policy);
  }
  cv_policy_free(policy);
  return 0;
}
