/* SPDX-License-Identifier: Apache-2.0 */
/* Time that a recruitment policy takes to spend B = 10000 on N = 100 workers, in this process. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "thirdparty/policy/policy.h"

enum { ARMS = 100, BUDGET = 10000, RUNS = 20 };

static double seconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* One campaign to its end; returns its pulls. */
static uint64_t run(const struct cv_spec *spec, uint64_t seed, const double *quality) {
  struct cv_policy *policy;
  struct cv_policy_step step = {0};
  struct cv_rng_seeded rng;
  uint64_t pulls[ARMS] = {0}, all = 0;
  int64_t sum[ARMS] = {0};
  struct cv_release release = {.noise = {.groups = 2, .group = {{.scale = 2, .count = 5}, {.scale = 16, .count = 3}}}};
  cv_rng_seeded_init(&rng, seed, CV_RNG_SCORE, 0, 0);
  CV_REQUIRE(cv_policy_new(spec, seed, &policy) == CV_OK);
  for (uint64_t plan = 1; cv_policy_step(policy, plan, &step) == CV_OK && !step.done; plan++) {
    for (size_t i = 0; i < step.wants; i++) {
      uint32_t arm = step.want[i].arm;
      pulls[arm] += step.want[i].tokens;
      all += step.want[i].tokens;
      sum[arm] += (int64_t)(quality[arm] * step.want[i].tokens * (double)CV_GRID);
      release.number++;
      release.plan = plan;
      release.arm = arm;
      release.tokens = pulls[arm];
      release.noisy_sum = sum[arm] + (int64_t)(10 * cv_rng_normal(&rng.rng) * (double)CV_GRID);
      cv_policy_apply(policy, &release);
    }
  }
  CV_REQUIRE(step.done);
  cv_policy_step_fini(&step);
  cv_policy_free(policy);
  return all;
}

int main(void) {
  static const char *const names[] = {"dpf", "dpu", "eps-greedy", "dp-ucb-bound", "cheapest", "uniform"};
  uint64_t cost[ARMS];
  double quality[ARMS];
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 1, CV_RNG_INSTANCE, 0, 0);
  for (int i = 0; i < ARMS; i++) {
    cost[i] = CV_MICRO + cv_rng_below(&rng.rng, 9 * CV_MICRO);
    quality[i] = cv_rng_unit(&rng.rng);
  }
  for (size_t n = 0; n < CV_COUNT(names); n++) {
    struct cv_spec spec = {.arms = ARMS,
                           .epsilon_micro = 400000,
                           .tokens = UINT64_C(1) << 40,
                           .cost_micro = cost,
                           .budget_micro = UINT64_C(1000000) * BUDGET,
                           .mechanism.name = "hybrid",
                           .privatizer.name = "none"};
    (void)snprintf(spec.policy.name, sizeof(spec.policy.name), "%s", names[n]);
    const struct cv_param *bad;
    CV_REQUIRE(cv_policy_check(&spec.policy, &bad, NULL) == CV_OK);
    uint64_t pulls = 0;
    double start = seconds();
    for (uint64_t seed = 0; seed < RUNS; seed++) {
      pulls += run(&spec, seed, quality);
    }
    (void)printf("%-13s %6.2f ms a campaign of %llu pulls\n", names[n], (seconds() - start) / RUNS * 1e3,
                 (unsigned long long)(pulls / RUNS));
  }
  return 0;
}
