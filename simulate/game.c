/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/game.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"

/* Equal gains without switches, whatever the memory. */
static bool is_same(const struct cv_adversary *a, const struct cv_adversary *b) {
  return a->class == b->class && a->arms == b->arms && a->best == b->best && a->rounds == b->rounds &&
         a->seed == b->seed;
}

/* Fills one arm's gains; `alike`: the gains of an arm with equal gains, to be copied, or NULL. */
static void fill_arm(struct cv_game *game, uint32_t arm, const int32_t *alike) {
  int32_t *gain = game->gain + arm * game->rounds;
  int64_t sum = 0;
  if (alike != NULL) {
    memcpy(gain, alike, game->rounds * sizeof(*gain));
  } else {
    cv_adversary_fill(&game->adversary, arm, 1, game->rounds, gain);
  }
  for (uint64_t round = 0; round < game->rounds; round++) {
    if (round % CV_GAME_BLOCK == 0) {
      game->before[round / CV_GAME_BLOCK * game->adversary.arms + arm] = sum;
    }
    sum += gain[round];
  }
}

static void fill(struct cv_game *game) {
  const struct cv_adversary *adversary = &game->adversary;
  const uint32_t first = adversary->best == 0 ? 1 : 0; /* the first arm that is not the best */
  for (uint32_t arm = 0; arm < adversary->arms; arm++) {
    bool has_twin = adversary->class->others_alike && arm != adversary->best && arm > first;
    fill_arm(game, arm, has_twin ? game->gain + first * game->rounds : NULL);
  }
}

enum cv_err cv_game_set(struct cv_game *game, const struct cv_adversary *adversary, uint64_t rounds,
                        struct cv_why *why) {
  if (game->gain != NULL && game->rounds == rounds && is_same(&game->adversary, adversary)) {
    game->adversary.memory = adversary->memory;
    return CV_OK;
  }
  cv_game_fini(game);
  bool fits = rounds <= CV_GAME_GAINS_MAX / adversary->arms; /* also keeps the product below from overflowing */
  struct cv_game made = {
      .adversary = *adversary,
      .rounds = rounds,
      .gain = fits ? calloc(rounds * adversary->arms, sizeof(*made.gain)) : NULL,
      .before = fits ? calloc((rounds / CV_GAME_BLOCK + 1) * adversary->arms, sizeof(*made.before)) : NULL,
  };
  if (made.gain == NULL || made.before == NULL) {
    cv_game_fini(&made);
    return cv_fail(why, CV_ERR_LIMIT,
                   "a game of %" PRIu64 " rounds and %" PRIu32
                   " arms does not fit into memory; expected at most %d gains",
                   rounds, adversary->arms, CV_GAME_GAINS_MAX);
  }
  fill(&made);
  *game = made;
  return CV_OK;
}

void cv_game_fini(struct cv_game *game) {
  free(game->gain);
  free(game->before);
  *game = (struct cv_game){0};
}

double cv_game_best(const struct cv_game *game, uint64_t rounds) {
  const uint32_t arms = game->adversary.arms;
  int64_t best = 0;
  /* From the sums before the last block: at most CV_GAME_BLOCK gains per arm, for each of a run's moments. */
  uint64_t block = rounds == 0 ? 0 : (rounds - 1) / CV_GAME_BLOCK;
  for (uint32_t arm = 0; arm < arms; arm++) {
    int64_t sum = game->before[block * arms + arm];
    for (uint64_t round = block * CV_GAME_BLOCK; round < rounds; round++) {
      sum += cv_game_gain(game, arm, round, 0);
    }
    best = sum > best ? sum : best;
  }
  return cv_grid_to(best);
}
