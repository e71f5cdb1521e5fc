/* SPDX-License-Identifier: Apache-2.0 */
/* Games against adversaries, compared round by round with the adversary, and the metrics of a trial. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "lab/experiment/campaigns.h"
#include "lab/experiment/experiment.h"
#include "lab/experiment/read.h"
#include "prepare/prepare.h"
#include "simulate/trial.h"
#include "tests/support/near.h"

/* Some blocks, the last one begun. */
enum { ARMS = 5, ROUNDS = 2 * CV_GAME_BLOCK + 300 };

static struct cv_adversary adversary_of(const struct cv_adversary_class *class, uint32_t best) {
  return (struct cv_adversary){.class = class, .arms = ARMS, .best = best, .rounds = ROUNDS, .seed = 11, .memory = 2};
}

static void set(struct cv_game *game, const struct cv_adversary *adversary, uint64_t rounds) {
  struct cv_why why = {0};
  if (cv_game_set(game, adversary, rounds, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static double best_by_hand(const struct cv_adversary *adversary, uint64_t rounds) {
  int64_t best = 0;
  for (uint32_t arm = 0; arm < adversary->arms; arm++) {
    int64_t sum = 0;
    for (uint64_t t = 1; t <= rounds; t++) {
      sum += cv_grid_from(cv_adversary_gain(adversary, arm, t, 0));
    }
    best = sum > best ? sum : best;
  }
  return cv_grid_to(best);
}

static void check_game(const struct cv_game *game, const struct cv_adversary *adversary) {
  static const uint64_t moments[] = {0, 1, 1023, 1024, 1025, ROUNDS};
  for (uint32_t arm = 0; arm < ARMS; arm++) {
    for (uint64_t round = 0; round < ROUNDS; round++) {
      assert_int_equal(cv_game_gain(game, arm, round, 0),
                       cv_grid_from(cv_adversary_gain(adversary, arm, round + 1, 0)));
      assert_int_equal(cv_game_gain(game, arm, round, 2),
                       cv_grid_from(cv_adversary_gain(adversary, arm, round + 1, 2)));
    }
  }
  for (size_t i = 0; i < CV_COUNT(moments); i++) {
    assert_near(cv_game_best(game, moments[i]), best_by_hand(adversary, moments[i]), 1e-9);
  }
}

static void test_gains_are_the_adversarys(void **state) {
  struct cv_game game = {0};
  for (size_t i = 0; cv_adversary_at(i) != NULL; i++) {
    for (uint32_t best = 0; best < ARMS; best += 2) {
      struct cv_adversary adversary = adversary_of(cv_adversary_at(i), best);
      set(&game, &adversary, ROUNDS);
      check_game(&game, &adversary);
    }
  }
  cv_game_fini(&game);
}

static void test_a_game_is_kept_until_another_is_asked_for(void **state) {
  struct cv_adversary adversary = adversary_of(cv_adversary_find("stochastic"), 1), other = adversary;
  struct cv_game game = {0};
  other.seed++;
  set(&game, &adversary, ROUNDS);
  game.gain[0] = -1; /* would be lost if it were computed again */
  set(&game, &adversary, ROUNDS);
  assert_int_equal(game.gain[0], -1);
  adversary.memory = 7; /* the same gains */
  set(&game, &adversary, ROUNDS);
  assert_int_equal(game.gain[0], -1);
  assert_int_equal(cv_game_gain(&game, 0, 0, 7), 0);
  assert_int_equal(cv_game_gain(&game, 0, 0, 8), -1);
  set(&game, &adversary, ROUNDS - 1);
  assert_int_not_equal(game.gain[0], -1);
  assert_int_equal(game.rounds, ROUNDS - 1);
  set(&game, &other, ROUNDS);
  check_game(&game, &other);
  cv_game_fini(&game);
}

static void test_a_game_that_no_memory_holds_is_refused(void **state) {
  struct cv_adversary adversary = adversary_of(cv_adversary_find("stochastic"), 1);
  struct cv_game game = {0};
  struct cv_why why = {0};
  assert_int_equal(cv_game_set(&game, &adversary, UINT64_MAX / 2, &why), CV_ERR_LIMIT);
  assert_non_null(strstr(why.text, "5 arms"));
  cv_game_fini(&game);
}

/* ---- trials ---- */

enum { PULLS = 400, RUNS = 200, MEMORY = 2 };

static const char blind[] =
    "campaign: blind\n"
    "items: {adversary: {name: switching, count: 5, best: 2, memory: 2}}\n"
    "policy: {name: exp3, gamma: 1}\n"
    "privacy: {mechanism: none, third_party: trusted}\n"
    "limits: {tokens: 400}\n"
    "experiment: {x: {pulls: 400}, metrics: [reward]}\n";

/* Whether some arm gave this in the round, or it is 0, for a switch. */
static bool was_given(const struct cv_game *game, uint64_t round, double reward) {
  bool given = round > 0 && fabs(reward) < 1e-9;
  for (uint32_t arm = 0; arm < ARMS; arm++) {
    given = given || fabs(reward - cv_grid_to(cv_game_gain(game, arm, round, 0))) < 1e-9;
  }
  return given;
}

/* Uniform choice: an arm gives what it gives if it is chosen, and was in each of the rounds before that the adversary
 * remembers. */
static double blind_gain(const struct cv_game *game) {
  double sum = 0;
  for (uint64_t round = 0; round < PULLS; round++) {
    double share = pow(1.0 / ARMS, 1 + fmin((double)round, MEMORY));
    for (uint32_t arm = 0; arm < ARMS; arm++) {
      sum += share * cv_grid_to(cv_game_gain(game, arm, round, 0));
    }
  }
  return sum;
}

static double run(const struct cv_prepared *campaign, struct cv_game *game, uint64_t seed) {
  uint64_t moment[PULLS], pulls = 0;
  struct cv_trial_totals at[PULLS];
  struct cv_why why = {0};
  struct cv_trial trial = {
      .campaign = campaign, .game = game, .seed = seed, .moments = PULLS, .moment = moment, .at = at};
  for (uint64_t i = 0; i < PULLS; i++) {
    moment[i] = i + 1;
  }
  assert_int_equal(cv_trial_run(&trial, &why), CV_OK);
  for (uint64_t i = 0; i < PULLS; i++) {
    assert_int_equal(at[i].pulls, i + 1);
    assert_true(was_given(game, i, at[i].reward - (i == 0 ? 0 : at[i - 1].reward)));
  }
  for (uint32_t arm = 0; arm < ARMS; arm++) {
    pulls += trial.pulls[arm];
  }
  assert_int_equal(pulls, PULLS);
  double reward = trial.total.reward;
  cv_trial_fini(&trial);
  return reward;
}

static void test_each_pull_gives_what_its_arm_gives_in_that_round(void **state) {
  struct cv_lab_experiment experiment;
  struct cv_prepared campaign;
  struct cv_game game = {0};
  struct cv_why why = {0};
  double sum = 0, squares = 0;
  assert_int_equal(cv_lab_experiment_parse("blind.yaml", blind, strlen(blind), NULL, &experiment, &why), CV_OK);
  assert_int_equal(cv_lab_prepare(&experiment, 0, 0, 3, &campaign, &why), CV_OK);
  set(&game, cv_quality_adversary(campaign.source.quality), PULLS);
  for (uint64_t seed = 1; seed <= RUNS; seed++) {
    double reward = run(&campaign, &game, seed);
    sum += reward;
    squares += reward * reward;
  }
  double mean = sum / RUNS, se = sqrt((squares / RUNS - mean * mean) / (RUNS - 1));
  assert_true(se > 0);
  assert_near(mean, blind_gain(&game), 3 * se);
  cv_game_fini(&game);
  cv_prepared_fini(&campaign);
  cv_lab_experiment_fini(&experiment);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gains_are_the_adversarys),
      cmocka_unit_test(test_a_game_is_kept_until_another_is_asked_for),
      cmocka_unit_test(test_a_game_that_no_memory_holds_is_refused),
      cmocka_unit_test(test_each_pull_gives_what_its_arm_gives_in_that_round),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
