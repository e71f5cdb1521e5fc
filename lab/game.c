/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/game.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/grid.h"

static bool is_same(const struct cv_adversary *a, const struct cv_adversary *b) {
  return a->class == b->class && a->arms == b->arms && a->best == b->best && a->rounds == b->rounds &&
         a->seed == b->seed;
}

static void fill(struct cv_lab_game *game) {
  const struct cv_adversary *adversary = &game->adversary;
  for (uint32_t arm = 0; arm < adversary->arms; arm++) {
    int64_t sum = 0;
    for (uint64_t round = 0; round < game->rounds; round++) {
      if (round % CV_LAB_GAME_BLOCK == 0) {
        game->before[round / CV_LAB_GAME_BLOCK * adversary->arms + arm] = sum;
      }
      int64_t gain = cv_grid_from(cv_adversary_gain(adversary, arm, round + 1, false));
      game->gain[round * adversary->arms + arm] = (int32_t)gain;
      sum += gain;
    }
  }
}

enum cv_err cv_lab_game_set(struct cv_lab_game *game, const struct cv_adversary *adversary, uint64_t rounds,
                            struct cv_why *why) {
  if (game->gain != NULL && game->rounds == rounds && is_same(&game->adversary, adversary)) {
    return CV_OK;
  }
  cv_lab_game_fini(game);
  bool fits = rounds <= CV_LAB_GAINS_MAX / adversary->arms;
  struct cv_lab_game made = {
      .adversary = *adversary,
      .rounds = rounds,
      .gain = fits ? calloc(rounds * adversary->arms, sizeof(*made.gain)) : NULL,
      .before = fits ? calloc((rounds / CV_LAB_GAME_BLOCK + 1) * adversary->arms, sizeof(*made.before)) : NULL,
      .costs_switches = adversary->class->costs_switches,
  };
  if (made.gain == NULL || made.before == NULL) {
    cv_lab_game_fini(&made);
    return cv_fail(why, CV_ERR_LIMIT,
                   "a game of %" PRIu64 " rounds and %" PRIu32
                   " arms does not fit into memory; expected at most %d gains",
                   rounds, adversary->arms, CV_LAB_GAINS_MAX);
  }
  fill(&made);
  *game = made;
  return CV_OK;
}

void cv_lab_game_fini(struct cv_lab_game *game) {
  free(game->gain);
  free(game->before);
  *game = (struct cv_lab_game){0};
}

double cv_lab_game_best(const struct cv_lab_game *game, uint64_t rounds) {
  const uint32_t arms = game->adversary.arms;
  int64_t best = 0;
  uint64_t block = rounds == 0 ? 0 : (rounds - 1) / CV_LAB_GAME_BLOCK;
  for (uint32_t arm = 0; arm < arms; arm++) {
    int64_t sum = game->before[block * arms + arm];
    for (uint64_t round = block * CV_LAB_GAME_BLOCK; round < rounds; round++) {
      sum += game->gain[round * arms + arm];
    }
    best = sum > best ? sum : best;
  }
  return cv_grid_to(best);
}
