/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coins of consecutive places, eight at a time. Each place has its stream, `path` with the place as its last part
 * (common/base/rng.h), so what is drawn is what a draw of that place by itself gives.
 */
#ifndef CV_QUALITY_COINS_H
#define CV_QUALITY_COINS_H

#include <stddef.h>
#include <stdint.h>

struct cv_coins {
  uint64_t path;
  uint64_t first; /* place */
  size_t count;
  /* Heads with probability `low` in [0,1]: if the first uniform is below it. With width > 0 the first uniform u makes
   * it low + width u, and the second decides. */
  double low, width;
};

/* CV_GRID for heads, 0 for tails, with what instructions the processor has. */
void cv_coins_fill(const struct cv_coins *coins, int32_t *ret_score);
/* The same without any that not all have. */
void cv_coins_fill_plain(const struct cv_coins *coins, int32_t *ret_score);

#endif
