/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/coins.h"

#include <stdbool.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/rng.h"

enum { LANES = 8 };
#define INLINE static inline __attribute__((always_inline))

typedef uint64_t lanes __attribute__((vector_size(64)));
typedef double reals __attribute__((vector_size(64)));
typedef int32_t scores __attribute__((vector_size(32)));

/* cv_mix64() */
INLINE void mix(lanes *x) {
  *x ^= *x >> 30;
  *x *= UINT64_C(0xbf58476d1ce4e5b9);
  *x ^= *x >> 27;
  *x *= UINT64_C(0x94d049bb133111eb);
  *x ^= *x >> 31;
}

/* cv_rng_branch(path, 2, place) */
INLINE void branch(uint64_t path, uint64_t first, lanes *ret) {
  const lanes ahead = {0, 1, 2, 3, 4, 5, 6, 7};
  lanes at = ahead + (first + CV_RNG_GOLDEN * 4);
  mix(&at);
  at += path + CV_RNG_GOLDEN;
  mix(&at);
  *ret = at;
}

/* Word `index` of the state that cv_rng_seeded_at() makes. */
INLINE void state_word(const lanes *at, uint64_t index, lanes *ret) {
  lanes word = *at + CV_RNG_GOLDEN * (index + 1);
  mix(&word);
  *ret = word;
}

/* The output of xoshiro256** for its second state word, as the 53 bits of a uniform. */
INLINE void uniform_bits(const lanes *word, lanes *ret) {
  lanes x = *word * 5;
  x = ((x << 7) | (x >> 57)) * 9;
  *ret = x >> 11;
}

INLINE void to_scores(const lanes *below, int32_t *ret) {
  scores score = __builtin_convertvector(*below & (uint64_t)CV_GRID, scores);
  memcpy(ret, &score, sizeof(score));
}

/* For a whole number k, k 2^-53 < p is equivalent to k < limit_of(p). */
static uint64_t limit_of(double p) {
  double scaled = p * 0x1p53;
  uint64_t limit = (uint64_t)scaled;
  return limit + ((double)limit < scaled);
}

/* Eight coins with the fixed probability limit 2^-53. */
INLINE void steady(const struct cv_coins *coins, uint64_t first, uint64_t limit, int32_t *ret) {
  lanes at, word, bits;
  branch(coins->path, first, &at);
  state_word(&at, 1, &word);
  uniform_bits(&word, &bits);
  lanes below = (lanes)(bits < limit);
  to_scores(&below, ret);
}

/* Eight coins whose probability is itself drawn: two outputs per stream. */
INLINE void wavering(const struct cv_coins *coins, uint64_t first, int32_t *ret) {
  lanes at, s0, s1, s2, first_bits, second_bits;
  branch(coins->path, first, &at);
  state_word(&at, 0, &s0);
  state_word(&at, 1, &s1);
  state_word(&at, 2, &s2);
  uniform_bits(&s1, &first_bits);
  s1 ^= s2 ^ s0; /* the part of xoshiro's step that its next output needs */
  uniform_bits(&s1, &second_bits);
  reals p = coins->low + coins->width * (__builtin_convertvector(first_bits, reals) * 0x1p-53);
  lanes below = (lanes)(__builtin_convertvector(second_bits, reals) * 0x1p-53 < p);
  to_scores(&below, ret);
}

INLINE void eight(const struct cv_coins *coins, size_t i, uint64_t limit, int32_t *ret) {
  if (coins->width > 0) {
    wavering(coins, coins->first + i, ret);
  } else {
    steady(coins, coins->first + i, limit, ret);
  }
}

INLINE void fill(const struct cv_coins *coins, int32_t *ret) {
  uint64_t limit = limit_of(coins->low);
  size_t i = 0;
  for (; i + LANES <= coins->count; i += LANES) {
    eight(coins, i, limit, ret + i);
  }
  if (i < coins->count) { /* the last, incomplete group */
    int32_t last[LANES];
    eight(coins, i, limit, last);
    memcpy(ret + i, last, (coins->count - i) * sizeof(*last));
  }
}

void cv_coins_fill_plain(const struct cv_coins *coins, int32_t *ret_score) {
  fill(coins, ret_score);
}

#ifdef __x86_64__
__attribute__((target("avx512f,avx512dq,avx512vl"))) static void fill_wide(const struct cv_coins *coins,
                                                                           int32_t *ret_score) {
  fill(coins, ret_score);
}

void cv_coins_fill(const struct cv_coins *coins, int32_t *ret_score) {
  bool wide =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  (wide ? fill_wide : cv_coins_fill_plain)(coins, ret_score);
}
#else
void cv_coins_fill(const struct cv_coins *coins, int32_t *ret_score) {
  cv_coins_fill_plain(coins, ret_score);
}
#endif
