/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One round of an experiment with PPAR in this process: for each of 20 arms a binomial sum of 6000 tokens, the hybrid
 * mechanism's noise, the release and its groups of noise, the policy's interval; then the policy's step. All means are
 * equal and alpha is 0, so that no arm settles and each round has all 20 arms; a campaign is 256 rounds.
 *
 * The lines after the first leave parts out: the differences are the parts' costs. The binomial draw (mispredicted
 * rejections) and the discrete Laplace draw take about a third each.
 */
#include "broker/mechanism/mechanism.h"
#include "common/base/grid.h"
#include "simulate/sampler/sampler.h"
#include "tests/bench/bench.h"
#include "thirdparty/policy/policy.h"

enum { ARMS = 20, TOKENS = 6000, ROUNDS = 256, CAMPAIGNS = 100 };

enum part { DRAWS = 1, NOISE = 2, POLICY = 4 };

struct world {
  unsigned parts;
  struct cv_spec spec;
  struct cv_mechanism_law law;
  struct cv_binomial score[ARMS];
  struct cv_rng_seeded tokens, noise;
  uint64_t seed;
};

static int64_t release_of(struct world *world, uint32_t arm, struct cv_mechanism *mechanism) {
  int64_t sum = TOKENS / 2;
  if ((world->parts & DRAWS) != 0) {
    sum = (int64_t)cv_binomial_draw(&world->score[arm], &world->tokens.rng);
  }
  if ((world->parts & NOISE) != 0) {
    cv_mechanism_draw(mechanism, &world->noise.rng);
    return cv_mechanism_release(mechanism, sum * CV_GRID);
  }
  return sum * CV_GRID;
}

static uint64_t rounds(struct world *world, struct cv_mechanism **mechanism, struct cv_policy *policy,
                       struct cv_policy_step *step) {
  uint64_t check = 0, number = 0;
  CV_REQUIRE(cv_policy_step(policy, 1, step) == CV_OK);
  for (uint64_t round = 1; round <= ROUNDS; round++) {
    struct cv_release release = {.plan = round, .tokens = round * TOKENS};
    for (size_t i = 0; i < step->wants; i++) {
      release.arm = step->want[i].arm;
      release.number = ++number;
      release.noisy_sum = release_of(world, release.arm, mechanism[release.arm]);
      check += (uint64_t)release.noisy_sum;
      if ((world->parts & POLICY) != 0) {
        cv_mechanism_noise(&world->law, round, &release.noise);
        cv_policy_apply(policy, &release);
      }
    }
    if ((world->parts & POLICY) != 0) {
      CV_REQUIRE(cv_policy_step(policy, round + 1, step) == CV_OK && step->wants == ARMS);
    }
  }
  return check;
}

static uint64_t campaigns(void *arg) {
  struct world *world = arg;
  uint64_t check = 0;
  for (int campaign = 0; campaign < CAMPAIGNS; campaign++) {
    struct cv_mechanism *mechanism[ARMS];
    struct cv_policy *policy;
    struct cv_policy_step step = {0};
    cv_rng_seeded_init(&world->tokens, ++world->seed, CV_RNG_SCORE, 0, 0);
    cv_rng_seeded_init(&world->noise, world->seed, CV_RNG_NOISE, 0, 0);
    CV_REQUIRE(cv_policy_new(&world->spec, world->seed, &policy) == CV_OK);
    for (int i = 0; i < ARMS; i++) {
      cv_binomial_init(&world->score[i], TOKENS, 0.5);
      CV_REQUIRE(cv_mechanism_new(&world->law, &mechanism[i]) == CV_OK);
    }
    check += rounds(world, mechanism, policy, &step);
    for (int i = 0; i < ARMS; i++) {
      cv_mechanism_free(mechanism[i]);
    }
    cv_policy_step_fini(&step);
    cv_policy_free(policy);
  }
  return check;
}

int main(void) {
  struct world world = {.spec = {.arms = ARMS,
                                 .epsilon_micro = 250000,
                                 .tokens = UINT64_C(1) << 40,
                                 .policy.name = "ppar",
                                 .mechanism.name = "hybrid",
                                 .privatizer.name = "none"}};
  const struct cv_param *bad;
  CV_REQUIRE(cv_params_set_number(&world.spec.policy.params, "alpha", 0) == CV_OK);
  CV_REQUIRE(cv_policy_check(&world.spec.policy, &bad, NULL) == CV_OK);
  CV_REQUIRE(cv_mechanism_law_init(&world.spec.mechanism, world.spec.epsilon_micro, ROUNDS, &world.law, NULL) == CV_OK);
  const struct {
    const char *what;
    unsigned parts;
  } lines[] = {{"a whole round of 20 arms", DRAWS | NOISE | POLICY},
               {"without the tokens' draws", NOISE | POLICY},
               {"without noise", DRAWS | POLICY},
               {"without intervals and steps", DRAWS | NOISE}};
  for (size_t i = 0; i < CV_COUNT(lines); i++) {
    world.parts = lines[i].parts;
    cv_bench(lines[i].what, "rounds", (double)ROUNDS * CAMPAIGNS, campaigns, &world);
  }
  return 0;
}
