/* SPDX-License-Identifier: Apache-2.0 */
/* Guessed qualities, where nobody knows the true ones: means are drawn from a normal law and clipped. */
#ifndef CV_SIMULATE_GUESS_H
#define CV_SIMULATE_GUESS_H

#include <stdbool.h>
#include <stdint.h>

/* N(mean, spread^2) clipped to [CV_GUESS_LOW, CV_GUESS_HIGH]. */
struct cv_guess {
  double mean, spread;
};
#define CV_GUESS_LOW  .02
#define CV_GUESS_HIGH .98

/* What is guessed where nobody says anything. */
#define CV_GUESS_USUAL ((struct cv_guess){.mean = .5, .spread = .3})

/* Draws `count` means; mean i depends only on the seed and i. */
void cv_guess_draw(const struct cv_guess *guess, uint64_t seed, uint32_t count, double *ret_means);

#endif
