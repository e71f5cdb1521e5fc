/* SPDX-License-Identifier: Apache-2.0 */
/* All gains of an adversary, computed once for all policies of a replicate. */
#ifndef CV_SIMULATE_GAME_H
#define CV_SIMULATE_GAME_H

#include "worker/quality/adversary.h"

enum { CV_GAME_BLOCK = 1024, CV_GAME_GAINS_MAX = 1 << 28 };

struct cv_game {
  struct cv_adversary adversary; /* its gains are stored; without a class: none yet */
  uint64_t rounds;               /* stored; may differ from the adversary's own number of rounds */
  int32_t *gain;                 /* grid units, [arm][round] without a switch; owned */
  int64_t *before;               /* per block of CV_GAME_BLOCK rounds, [block][arm]: the arm's sum before it; owned */
};

/* Computes the gains of the first `rounds` rounds unless they are stored already; a new game must be zeroed.
 * CV_ERR_LIMIT with one line for more than CV_GAME_GAINS_MAX gains, or if memory is short. */
CV_MUST_USE enum cv_err cv_game_set(struct cv_game *game, const struct cv_adversary *adversary, uint64_t rounds,
                                    struct cv_why *why);
void cv_game_fini(struct cv_game *game);

/* The gain of an arm in a round, counted from 0, below game->rounds; `switched` as in struct cv_moment. */
static inline int32_t cv_game_gain(const struct cv_game *game, uint32_t arm, uint64_t round, uint32_t switched) {
  return cv_adversary_minds(game->adversary.memory, switched) ? 0 : game->gain[arm * game->rounds + round];
}
/* The sum of the best single arm's gains over the first `rounds` <= game->rounds rounds, in scores. */
double cv_game_best(const struct cv_game *game, uint64_t rounds);

#endif
