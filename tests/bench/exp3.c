/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EXP3's core at K = 4, cv_exp3_draw() and cv_exp3_gain() with the seeded generator and Bernoulli gains; for whole
 * steps of the policy see bandits.c. Runs are short, so that the best of them had its core and its sibling thread to
 * itself. The cost is the dependency chain from one step's probability over an exponential and the sum of the weights
 * to the next step's draw, and a mispredicted branch for the gain.
 */
#include "thirdparty/policy/exp3.h"

#include "tests/bench/bench.h"

enum { ARMS = 4, ROUNDS = 1 << 18, GAMES = 4 };

/* `arg`: the arms' means. */
static uint64_t games(void *arg) {
  const double *means = arg;
  uint64_t check = 0;
  for (uint64_t game = 0; game < GAMES; game++) {
    struct cv_rng_seeded rng;
    struct cv_exp3 exp3;
    cv_rng_seeded_init(&rng, game, CV_RNG_POLICY, 0, 0);
    CV_REQUIRE(cv_exp3_init(ARMS, 0, ROUNDS, &exp3) == CV_OK);
    for (int round = 0; round < ROUNDS; round++) {
      uint32_t arm = cv_exp3_draw(&exp3, &rng.rng);
      cv_exp3_gain(&exp3, arm, cv_rng_unit(&rng.rng) < means[arm] ? 1 : 0);
      check += arm;
    }
    cv_exp3_fini(&exp3);
  }
  return check;
}

int main(void) {
  /* An arm that cannot be predicted; and one that is soon drawn nearly always. */
  double alike[ARMS] = {0.5, 0.5, 0.5, 0.5}, apart[ARMS] = {0.5, 0.9, 0.5, 0.5};
  cv_bench("exp3, four equal arms", "steps", (double)ROUNDS * GAMES, games, alike);
  cv_bench("exp3, one far better arm", "steps", (double)ROUNDS * GAMES, games, apart);
  return 0;
}
