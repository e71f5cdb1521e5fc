/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of two arms wins, for a source of comparisons: the probability of each pair, either by the strengths of
 * Bradley and Terry ("Rank Analysis of Incomplete Block Designs: I", 1952), or pair by pair.
 */
#ifndef CV_QUALITY_PAIRS_H
#define CV_QUALITY_PAIRS_H

#include <stdint.h>

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

#endif
