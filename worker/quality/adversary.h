/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adversaries: gains that change from round to round, for adversarial bandits (Tossou and Dimitrakakis, "Achieving
 * Privacy in the Adversarial Multi-Armed Bandit", 2017, section 4). A gain is a pure function of (seed, arm, round), so
 * all policies with one seed play the same game, and the best arm in hindsight is known.
 *
 *   deterministic    arm 1 gives .38 always, arm 2 gives 1 on even rounds, arm 3 gives 1 on multiples of 3, all else 0
 *   stochastic       Bernoulli, .55 for the best arm and .5 for the others
 *   fully-oblivious  each round draws p, uniform in [.5, .5 + 2e] for the best arm and in [.5 - e, .5 + e] for each
 *                    other, e = .05; the gain is Bernoulli(p)
 *   oblivious        fully-oblivious at every multiple of 200; the gain stays constant until the next multiple
 *   switching        losses of Dekel, Ding, Koren and Peres, "Bandits with switching costs: T^(2/3) regret" (2014),
 *                    figure 1: W_t = W_rho(t) + N(0, s^2), rho(t) = t without its lowest one, W_0 = 0,
 *                    s = 1/(9 log2 T); the gain is 1 - clip(W_t + 1/2 - gap [best arm]),
 *                    gap = K^(1/3) T^(-1/3)/(9 log2 T); memory 1
 *
 * An adversary with a memory of m rounds reacts to the player: a round gives 0 unless its arm is also that of each of
 * the m rounds before. So a gain depends on the last m + 1 actions alone, as with the m-memory bounded adaptive
 * adversary of Dekel, Tewari and Arora, "Online bandit learning against an adaptive adversary" (2012), and each switch
 * costs m rounds. Memory 0 is an oblivious adversary, memory 1 one with costs of switching. Playing one arm only gives
 * that arm's gains, so the regret against the best single arm is that paper's policy regret.
 *
 * Rounds are counted from 1 here, t = 1 .. T. One adversary is one file and one row of common/config/rewards.h.
 */
#ifndef CV_QUALITY_ADVERSARY_H
#define CV_QUALITY_ADVERSARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/spec.h"

struct cv_adversary;

struct cv_adversary_class {
  const char *name;
  uint32_t fixed_best; /* the best arm, from 1; 0: the campaign chooses the best arm */
  uint32_t memory;     /* unless the campaign chooses it */
  /* The gain of an arm at round t, in [0,1]. */
  double (*gain)(const struct cv_adversary *self, uint32_t arm, uint64_t t);
  bool others_alike; /* all arms but the best one have equal gains */
  /* The gains of the rounds t .. t + count - 1, in grid units. NULL: cv_adversary_fill() calls `gain` per round. */
  void (*fill)(const struct cv_adversary *self, uint32_t arm, uint64_t t, size_t count, int32_t *ret_score);
};

struct cv_adversary {
  const struct cv_adversary_class *class;
  uint32_t arms;
  uint32_t best;   /* arm, from 0 */
  uint64_t rounds; /* T; `switching` depends on it */
  uint64_t seed;
  uint32_t memory; /* at most CV_MEMORY_MAX */
};

enum { CV_ROUNDS_MAX = 1 << 28 };

/* Find a class by name, or by index; NULL if there is none. */
const struct cv_adversary_class *cv_adversary_find(const char *name);
const struct cv_adversary_class *cv_adversary_at(size_t index);

/* The gain of one pull; arm < arms, t >= 1; `switched` as in struct cv_moment. */
double cv_adversary_gain(const struct cv_adversary *self, uint32_t arm, uint64_t t, uint32_t switched);
/* Whether a memory of so many rounds finds another arm. */
static inline bool cv_adversary_minds(uint32_t memory, uint32_t switched) {
  return switched > 0 && switched <= memory;
}
/* `switched` of a round, from that of the round before (0 for the first) and whether the arm is another one. */
static inline uint32_t cv_adversary_switched(uint32_t before, bool is_other) {
  return is_other ? 1 : before == 0 || before == CV_MEMORY_MAX ? 0 : before + 1;
}
/* Sets the gains of the rounds t .. t + count - 1 without switches, in grid units: as cv_adversary_gain(), faster. */
void cv_adversary_fill(const struct cv_adversary *self, uint32_t arm, uint64_t t, size_t count, int32_t *ret_score);
/* The sum of an arm's gains if rounds 1 .. n all play it; costs n calls of `gain`. */
double cv_adversary_total(const struct cv_adversary *self, uint32_t arm, uint64_t n);

#endif
