/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `policy: auto` and `mechanism: auto`: simulates a campaign with every candidate (candidates.h) and names the best.
 * The requester's side does this before it submits; broker and third-party only ever see what was chosen.
 *
 * The choice uses the campaign's settings, never its scores: rows of a file, means of listed items and qualities of
 * workers do not enter. Instead means are drawn from N(.5, .3^2), or as `synthetic` says, qualities of workers from
 * U(0, 1), all clipped to [.02, .98]; costs of workers and the number of items are part of the settings. So the choice
 * tells the third-party nothing about any score. It depends on the file alone: seeds are fixed, and no clock is read.
 *
 * A simulation has at most 20 items (10 for bandits), with the tokens and the budget of as many, at most 20,000 pulls
 * of a bandit or hires of the cheapest worker, and at most 2,000 plans of a ranking. Every candidate gets the same four
 * instances; the best four get sixteen more. What counts:
 *
 *   classes, the best item   the tokens to the end; a run that does not end, or is wrong about an item, counts as if it
 *                            had used all; geometric mean
 *   hire                     the share of the best attainable reward, mean
 *   least regret             mean
 */
#ifndef CV_SIMULATE_CHOOSE_H
#define CV_SIMULATE_CHOOSE_H

#include "prepare/prepare.h"

struct cv_chosen {
  char text[480]; /* what was chosen and why, one line; "": the file says it all */
};

/*
 * As cv_prepare(), after the choice. Without anything to choose it is cv_prepare(). `brokers`: 1 or 2 instead of what
 * the file says; 0: the file's.
 */
CV_MUST_USE enum cv_err cv_choose_prepare(const char *path, uint64_t seed, uint32_t brokers, struct cv_prepared *ret,
                                          struct cv_chosen *ret_chosen, struct cv_why *why);

#endif
