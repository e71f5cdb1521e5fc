/* SPDX-License-Identifier: Apache-2.0 */
/* An adversary's gains, all of them, calculated once for all policies of a replicate. */
#ifndef CV_LAB_GAME_H
#define CV_LAB_GAME_H

#include "worker/quality/adversary.h"

enum { CV_LAB_GAME_BLOCK = 1024, CV_LAB_GAINS_MAX = 1 << 28 };

struct cv_lab_game {
  struct cv_adversary adversary; /* whose gains these are; no class: none yet */
  uint64_t rounds;               /* of them; the adversary may have been made for another number */
  int32_t *gain;                 /* grid units, [arm][round] without a switch; owned */
  int64_t *before; /* each arm's sum before rounds 0, CV_LAB_GAME_BLOCK, 2 CV_LAB_GAME_BLOCK, ...; owned */
  bool costs_switches;
};

/* Calculates those of the first `rounds` rounds unless they are there already. Zeroed at first. CV_ERR_LIMIT: more than
 * CV_LAB_GAINS_MAX gains, or than there is memory for, in one line. */
CV_MUST_USE enum cv_err cv_lab_game_set(struct cv_lab_game *game, const struct cv_adversary *adversary, uint64_t rounds,
                                        struct cv_why *why);
void cv_lab_game_fini(struct cv_lab_game *game);

/* Of a round from 0 on, below game->rounds. */
static inline int32_t cv_lab_game_gain(const struct cv_lab_game *game, uint32_t arm, uint64_t round, bool switched) {
  return switched && game->costs_switches ? 0 : game->gain[arm * game->rounds + round];
}
/* What the best single arm gains over the first `rounds` <= game->rounds rounds, in scores. */
double cv_lab_game_best(const struct cv_lab_game *game, uint64_t rounds);

#endif
