/* SPDX-License-Identifier: Apache-2.0 */
/* Bernoulli tokens, bit-sliced: bit j of word i belongs to one token of the block. */
#include <string.h>

#include "simulate/sampler/kernels.h"

enum { BITS = 4, BLOCK = 64 * CV_SAMPLER_LANES };

/* Adds the number of ones of each word to `total`. */
CV_INLINE void count_ones(const cv_simd *word, cv_simd *total) {
  const uint64_t m1 = UINT64_C(0x5555555555555555), m2 = UINT64_C(0x3333333333333333),
                 m4 = UINT64_C(0x0f0f0f0f0f0f0f0f);
  cv_simd x = *word;
  x -= (x >> 1) & m1;
  x = (x & m2) + ((x >> 2) & m2);
  x = (x + (x >> 4)) & m4;
  x += x >> 8;
  x += x >> 16;
  x += x >> 32;
  *total += x & 0x7f;
}

CV_INLINE uint64_t across(const cv_simd *total) {
  uint64_t word[CV_SAMPLER_LANES], sum = 0;
  memcpy(word, total, sizeof(word));
  for (int i = 0; i < CV_SAMPLER_LANES; i++) {
    sum += word[i];
  }
  return sum;
}

/*
 * Compares BITS random bits of each token of a block with the same bits of p, the lowest bit first: sets `less` where
 * the token's bits are below p's, and `equal` where they are equal. want[b] is all ones if p's bit b is one.
 */
CV_INLINE void compare(struct cv_simd_state *state, const cv_simd *want, cv_simd *ret_less, cv_simd *ret_equal) {
  cv_simd less = {0}, equal = ~less;
  for (int b = 0; b < BITS; b++) {
    cv_simd bit;
    cv_simd_next(state, &bit);
    cv_simd differs = bit ^ want[b];
    less = (differs & want[b]) | (~differs & less);
    equal &= ~differs;
  }
  *ret_less = less;
  *ret_equal = equal;
}

/* A mask of the tokens in the last, incomplete block. */
CV_INLINE void mask_of(uint64_t tokens, cv_simd *ret) {
  uint64_t word[CV_SAMPLER_LANES];
  for (uint64_t i = 0; i < CV_SAMPLER_LANES; i++) {
    uint64_t here = tokens > 64 * i ? tokens - 64 * i : 0;
    word[i] = here >= 64 ? UINT64_MAX : (UINT64_C(1) << here) - 1;
  }
  memcpy(ret, word, sizeof(word));
}

/* One pass: compares `count` tokens with BITS bits of p. Returns the number below, and sets the number of undecided. */
CV_INLINE uint64_t pass(struct cv_simd_state *state, uint64_t count, unsigned digit, uint64_t *ret_open) {
  cv_simd want[BITS], ones = {0}, open = {0}, less, equal;
  for (int b = 0; b < BITS; b++) {
    want[b] = (cv_simd){0} - (digit >> b & 1);
  }
  for (uint64_t left = count; left > 0; left -= left < BLOCK ? left : BLOCK) {
    compare(state, want, &less, &equal);
    if (left < BLOCK) {
      cv_simd mask;
      mask_of(left, &mask);
      less &= mask;
      equal &= mask;
    }
    count_ones(&less, &ones);
    count_ones(&equal, &open);
  }
  *ret_open = across(&open);
  return across(&ones);
}

/* Once p has no more bits, the undecided tokens are equal to p or above it: not below. */
CV_INLINE uint64_t sum(struct cv_sampler *sampler, uint64_t count, double p) {
  struct cv_simd_state state;
  uint64_t ones = 0;
  cv_simd_load(sampler, &state);
  while (count > 0 && p > 0) {
    p *= 1 << BITS;
    unsigned digit = (unsigned)p; /* exact, like the product and the difference: powers of two lose no bits */
    p -= digit;
    ones += pass(&state, count, digit, &count);
  }
  cv_simd_store(&state, sampler);
  return ones;
}

uint64_t cv_sampler_bernoulli_plain(struct cv_sampler *sampler, uint64_t count, double p) {
  return sum(sampler, count, p);
}

#ifdef __x86_64__
CV_TARGET_AVX2 uint64_t cv_sampler_bernoulli_avx2(struct cv_sampler *sampler, uint64_t count, double p) {
  return sum(sampler, count, p);
}

CV_TARGET_AVX512 uint64_t cv_sampler_bernoulli_avx512(struct cv_sampler *sampler, uint64_t count, double p) {
  return sum(sampler, count, p);
}
#endif
