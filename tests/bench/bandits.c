/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole steps of a bandit's policy, cv_policy_step() and cv_policy_apply(), with Bernoulli scores in this process, as
 * in an experiment. KL-UCB's cost is the index of the arm that was pulled: about five Newton steps of two logarithms
 * each; the other arms' indices are computed only when a bound says that they matter.
 */
#include <math.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "tests/bench/bench.h"
#include "thirdparty/policy/policy.h"

enum { ARMS_MAX = 16 };

struct game {
  struct cv_spec spec;
  uint64_t seed, pulls;
  int games;
};

static void play(const struct game *game, uint64_t seed) {
  struct cv_policy *policy;
  struct cv_policy_step step = {0};
  struct cv_rng_seeded rng;
  uint64_t pulls[ARMS_MAX] = {0};
  int64_t sum[ARMS_MAX] = {0};
  struct cv_release release = {0};
  cv_rng_seeded_init(&rng, seed, CV_RNG_SCORE, 0, 0);
  CV_REQUIRE(cv_policy_new(&game->spec, seed, &policy) == CV_OK);
  for (uint64_t plan = 1; cv_policy_step(policy, plan, &step) == CV_OK && !step.done; plan++) {
    for (size_t i = 0; i < step.wants; i++) {
      uint32_t arm = step.want[i].arm;
      sum[arm] += cv_rng_unit(&rng.rng) < 0.6 - 0.03 * arm ? CV_GRID : 0;
      release.number++;
      release.plan = plan;
      release.arm = arm;
      release.tokens = ++pulls[arm];
      release.noisy_sum = sum[arm];
      cv_policy_apply(policy, &release);
    }
  }
  CV_REQUIRE(step.done && release.number == game->pulls);
  cv_policy_step_fini(&step);
  cv_policy_free(policy);
}

static uint64_t games(void *arg) {
  struct game *game = arg;
  for (int i = 0; i < game->games; i++) {
    play(game, ++game->seed);
  }
  return game->seed;
}

static void measure(const char *policy, uint32_t arms, double keep, uint64_t pulls, int count) {
  struct game game = {.spec = {.arms = arms,
                               .tokens = pulls,
                               .thirdparty_trusted = true,
                               .mechanism.name = "none",
                               .privatizer.name = "none"},
                      .pulls = pulls,
                      .games = count};
  const struct cv_param *bad;
  (void)snprintf(game.spec.policy.name, sizeof(game.spec.policy.name), "%s", policy);
  if (keep < 1) {
    (void)snprintf(game.spec.privatizer.name, sizeof(game.spec.privatizer.name), "randomized-response");
    CV_REQUIRE(cv_params_set_number(&game.spec.privatizer.params, "epsilon",
                                    round(log(keep / (1 - keep)) * 1e6) / 1e6) == CV_OK);
  }
  CV_REQUIRE(cv_policy_check(&game.spec.policy, &bad, NULL) == CV_OK);
  char what[64];
  (void)snprintf(what, sizeof(what), "%s, K = %u, T = %llu, p = %g", policy, arms, (unsigned long long)pulls, keep);
  cv_bench(what, "steps", (double)pulls * count, games, &game);
}

int main(void) {
  measure("klucb-cf", 10, 1, 10000, 20);
  measure("klucb-cf", 10, 0.75, 10000, 20);
  measure("kl-local", 10, 1, 10000, 20);
  measure("kl-local", 10, 0.75, 10000, 20);
  measure("posterior-quantile", 10, 1, 10000, 20);
  measure("posterior-quantile", 10, 0.75, 10000, 20);
  measure("ucb-cf", 10, 1, 10000, 20);
  measure("ts-cf", 10, 1, 10000, 20);
  measure("exp3", 4, 1, 1 << 18, 4);
  return 0;
}
