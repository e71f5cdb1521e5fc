/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coin flips for consecutive places, eight at a time. Each place has its own stream, `path` with the place as its last
 * part (common/base/rng.h), so the results equal those of drawing each place alone.
 */
#ifndef CV_QUALITY_COINS_H
#define CV_QUALITY_COINS_H

#include <stddef.h>
#include <stdint.h>

struct cv_coins {
  uint64_t path;
  uint64_t first; /* first place */
  size_t count;
  /* width = 0: heads if the first uniform is below `low`, in [0,1]. width > 0: the first uniform u sets the probability
   * to low + width u, and the second uniform decides. */
  double low, width;
};

/* Sets `count` scores: CV_GRID for heads, 0 for tails. Uses AVX-512 if the processor has it. */
void cv_coins_fill(const struct cv_coins *coins, int32_t *ret_score);
/* The same with baseline instructions only. */
void cv_coins_fill_plain(const struct cv_coins *coins, int32_t *ret_score);

#endif
