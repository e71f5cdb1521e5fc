/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of two arms wins, for a source of comparisons: the probability of each pair, either by the strengths of
 * Bradley and Terry ("Rank Analysis of Incomplete Block Designs: I", 1952), or pair by pair.
 */
#ifndef CV_QUALITY_PAIRS_H
#define CV_QUALITY_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/result.h"

/* The most arms of a source: their Borda scores take time with the square of the number. */
enum { CV_PAIRS_ARMS_MAX = 8192 };

/* Exactly one of the two arrays is there. */
struct cv_pairs {
  uint32_t arms;    /* at least 2 */
  double *strength; /* `arms` of them, each at least 0; owned */
  uint64_t rows;    /* of the data file that `chance` is the mean of; 0: none */
  double *chance;   /* [arm][opponent], in [0,1], chance[a][b] = 1 - chance[b][a]; owned */
};

void cv_pairs_fini(struct cv_pairs *pairs);
/* P(arm beats opponent), two different arms. By strengths s: s_arm/(s_arm + s_opponent), and 1/2 if both are 0. */
double cv_pairs_chance(const struct cv_pairs *pairs, uint32_t arm, uint32_t opponent);
/* The Borda score of an arm: its mean probability to beat a uniformly drawn other arm. */
double cv_pairs_borda(const struct cv_pairs *pairs, uint32_t arm);

/*
 * Which arms a ranking from duels (policy pair-sort) has where it says that they are, by what it claims
 * (docs/beyond.md): an arm with a class is right if
 *   - no arm further down beats it, and it beats no arm further up, with probability above 1/2 + tie; arms without a
 *     class are further down than all that have one
 *   - it is within 1/2 - tie to 1/2 + tie against the arm of its class that most of the class are within that of
 * Two arms that tie may be in one class or in two. Time goes with the square of the arms. ret_right[i] is false for an
 * arm without a class.
 */
void cv_pairs_right(const struct cv_pairs *pairs, double tie, const struct cv_standing *standing, bool *ret_right);

#endif
