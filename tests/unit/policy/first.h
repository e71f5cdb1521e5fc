/* SPDX-License-Identifier: Apache-2.0 */
/* A policy with the noise of brokers, and its first releases: of items whose scores are their mean. */
#ifndef CV_TESTS_FIRST_H
#define CV_TESTS_FIRST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/policy.h"

struct first_of {
  const char *policy, *mechanism;
  uint32_t arms;
  double epsilon, delta; /* delta 0: the policy has none, or its default */
  bool is_exact;         /* with the exact tail, as by default; else by its moments */
};

static inline void first_spec(const struct first_of *of, struct cv_spec *ret) {
  static uint64_t cost[8];
  const struct cv_policy_class *class = cv_policy_find(of->policy);
  const struct cv_param *bad;
  struct cv_spec spec = {.name = "first", .arms = of->arms, .tokens_per_worker = 1, .tokens = UINT64_C(1) << 40};
  spec.epsilon_micro = (uint64_t)(of->epsilon * CV_MICRO);
  (void)snprintf(spec.policy.name, sizeof(spec.policy.name), "%s", of->policy);
  (void)snprintf(spec.mechanism.name, sizeof(spec.mechanism.name), "%s", of->mechanism);
  (void)snprintf(spec.privatizer.name, sizeof(spec.privatizer.name), "none");
  if (of->delta > 0) {
    CV_REQUIRE(cv_params_set_number(&spec.policy.params, "delta", of->delta) == CV_OK);
  }
  if (strncmp(of->policy, "ppar", 4) == 0) {
    CV_REQUIRE(cv_params_set_number(&spec.policy.params, "alpha", .1) == CV_OK);
  }
  if (class->kind == CV_POLICY_RECRUITMENT) {
    for (uint32_t i = 0; i < of->arms; i++) {
      cost[i] = (i + 1) * UINT64_C(1000000);
    }
    spec.cost_micro = cost;
    spec.budget_micro = UINT64_C(1000000) * CV_MICRO;
  }
  if (strncmp(of->policy, "ppar", 4) == 0 && !of->is_exact) {
    CV_REQUIRE(cv_params_set_text(&spec.policy.params, "tails", "chernoff") == CV_OK);
  }
  CV_REQUIRE(cv_policy_check(&spec.policy, &bad, NULL) == CV_OK);
  spec.pairs = strcmp(of->policy, "pair-sort") == 0;
  CV_REQUIRE(cv_policy_fits(&spec, NULL) == CV_OK);
  *ret = spec;
}

/* The release of a want's tokens with a mean of .5, with this noise, in scores, stated as `stated`. */
static inline struct cv_release first_release(const struct cv_want *want, double noise, struct cv_noise stated) {
  double sum = .5 * want->tokens + noise;
  return (struct cv_release){.number = want->arm + 1,
                             .plan = 1,
                             .arm = want->arm,
                             .tokens = want->tokens,
                             .noisy_sum = (int64_t)(sum * (double)CV_GRID),
                             .noise = stated};
}

#endif
