/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/game.h"

#include <stdlib.h>

#include "common/base/grid.h"

static bool is_same(const struct cv_adversary *a, const struct cv_adversary *b) {
  return a->class == b->class && a->arms == b->arms && a->best == b->best && a->rounds == b->rounds &&
         a->seed == b->seed;
}

enum cv_err cv_lab_game_set(struct cv_lab_game *game, const struct cv_adversary *adversary) {
  if (is_same(&game->adversary, adversary)) {
    return CV_OK;
  }
  int32_t *gain = calloc(adversary->rounds * adversary->arms, sizeof(*gain));
  if (gain == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint64_t round = 0; round < adversary->rounds; round++) {
    for (uint32_t arm = 0; arm < adversary->arms; arm++) {
      gain[round * adversary->arms + arm] = (int32_t)cv_grid_from(cv_adversary_gain(adversary, arm, round + 1, false));
    }
  }
  free(game->gain);
  *game =
      (struct cv_lab_game){.adversary = *adversary, .gain = gain, .costs_switches = adversary->class->costs_switches};
  return CV_OK;
}

void cv_lab_game_fini(struct cv_lab_game *game) {
  free(game->gain);
  *game = (struct cv_lab_game){0};
}

double cv_lab_game_best(const struct cv_lab_game *game, uint64_t rounds) {
  int64_t best = 0;
  for (uint32_t arm = 0; arm < game->adversary.arms; arm++) {
    int64_t sum = 0;
    for (uint64_t round = 0; round < rounds; round++) {
      sum += game->gain[round * game->adversary.arms + arm];
    }
    best = sum > best ? sum : best;
  }
  return cv_grid_to(best);
}
