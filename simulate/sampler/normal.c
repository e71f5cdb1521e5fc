/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of clipped normal tokens: Box and Muller (1958), sixteen tokens in parallel. The angle is drawn from a quarter
 * of the circle around 0, and the sign of the cosine from a separate bit; at most that exchanges the two tokens of a
 * pair, and both are summed. If only one token of a pair is needed, a further bit selects it.
 */
#include <math.h>
#include <string.h>

#include "common/base/grid.h"
#include "simulate/sampler/kernels.h"

typedef double cv_reals __attribute__((vector_size(64)));

/* The law of all tokens of a call, in grid units. */
struct law {
  double mean, sd;
};

/* 52 random bits as a uniform number in [1, 2). */
CV_INLINE void unit_of(const cv_simd *word, cv_reals *ret) {
  *ret = (cv_reals)((*word >> 12) | UINT64_C(0x3ff0000000000000));
}

/*
 * -2 ln u, 0 < u <= 1 normal: u = 2^e m with m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh s for s = (m-1)/(m+1),
 * |s| < 0.172, by its series up to s^17; the relative error is below 10^-15.
 */
CV_INLINE void minus_two_ln(const cv_reals *u, cv_reals *ret) {
  const uint64_t one = UINT64_C(0x3ff0000000000000), root_half = UINT64_C(0x3fe6a09e667f3bcd);
  cv_simd shifted = (cv_simd)*u + (one - root_half);
  /* An exponent as the low bits of 2^52 + exponent. */
  cv_reals e = (cv_reals)((shifted >> 52) | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023);
  cv_reals m = (cv_reals)((shifted & UINT64_C(0x000fffffffffffff)) + root_half);
  cv_reals s = (m - 1.0) / (m + 1.0), t = s * s;
  cv_reals series = t * (1.0 / 17) + 1.0 / 15;
  series = t * series + 1.0 / 13;
  series = t * series + 1.0 / 11;
  series = t * series + 1.0 / 9;
  series = t * series + 1.0 / 7;
  series = t * series + 1.0 / 5;
  series = t * series + 1.0 / 3;
  series = t * series + 1.0;
  *ret = e * (-2 * M_LN2) - 4.0 * (s * series);
}

/* For |x| <= pi/4, by their series up to x^13 and x^14: accurate to 3 10^-14. */
CV_INLINE void sine_cosine(const cv_reals *x, cv_reals *ret_sine, cv_reals *ret_cosine) {
  cv_reals t = *x * *x;
  cv_reals sine = t * (1.0 / 6227020800) - 1.0 / 39916800;
  sine = t * sine + 1.0 / 362880;
  sine = t * sine - 1.0 / 5040;
  sine = t * sine + 1.0 / 120;
  sine = t * sine - 1.0 / 6;
  *ret_sine = *x + *x * (t * sine);
  cv_reals cosine = 1.0 / 479001600 - t * (1.0 / 87178291200);
  cosine = t * cosine - 1.0 / 3628800;
  cosine = t * cosine + 1.0 / 40320;
  cosine = t * cosine - 1.0 / 720;
  cosine = t * cosine + 1.0 / 24;
  cosine = t * cosine - 1.0 / 2;
  *ret_cosine = t * cosine + 1.0;
}

/* Correctly rounded on every processor. */
CV_INLINE void square_root(cv_reals *x) {
  double each[CV_SAMPLER_LANES];
  memcpy(each, x, sizeof(each));
  for (int i = 0; i < CV_SAMPLER_LANES; i++) {
    each[i] = sqrt(each[i]);
  }
  memcpy(x, each, sizeof(each));
}

/* A normal as a clipped score in grid units: the low bits of 2^52 + score. */
CV_INLINE void score_of(const struct law *law, const cv_reals *z, cv_simd *ret) {
  cv_reals at = law->mean + law->sd * *z;
  cv_simd above = (cv_simd)(at > (double)CV_GRID), below = (cv_simd)(at < 0.0);
  const cv_reals end = {CV_GRID, CV_GRID, CV_GRID, CV_GRID, CV_GRID, CV_GRID, CV_GRID, CV_GRID};
  cv_simd clipped = (((cv_simd)at & ~above) | ((cv_simd)end & above)) & ~below;
  *ret = (cv_simd)((cv_reals)clipped + 0x1p52);
}

/* Draws eight pairs of scores. The words `bits` have two unused bits; the higher one selects a token of a pair. */
CV_INLINE void draw(struct cv_simd_state *state, const struct law *law, cv_simd *ret_a, cv_simd *ret_b,
                    cv_simd *ret_bits) {
  cv_simd first, second;
  cv_reals u, v, radius, sine, cosine;
  cv_simd_next(state, &first);
  cv_simd_next(state, &second);
  unit_of(&first, &u);
  unit_of(&second, &v);
  u = 2.0 - u; /* in (0, 1]: the logarithm is finite */
  v = (v - 1.5) * M_PI_2;
  minus_two_ln(&u, &radius);
  square_root(&radius);
  sine_cosine(&v, &sine, &cosine);
  cv_reals a = (cv_reals)((cv_simd)(radius * cosine) ^ (second << 63)), b = radius * sine;
  score_of(law, &a, ret_a);
  score_of(law, &b, ret_b);
  *ret_bits = second;
}

CV_INLINE uint64_t sum(struct cv_sampler *sampler, uint64_t count, double mean, double sd) {
  const struct law law = {.mean = mean * (double)CV_GRID, .sd = sd * (double)CV_GRID};
  /* Each score is in the low bits of a word, below the bits of 2^52. The sums wrap; `base` is subtracted at the end. */
  const uint64_t base = UINT64_C(0x4330000000000000), block = 2 * (uint64_t)CV_SAMPLER_LANES;
  struct cv_simd_state state;
  cv_simd a, b, bits, total = {0};
  uint64_t word[3][CV_SAMPLER_LANES], result = 0, left = count;
  cv_simd_load(sampler, &state);
  for (; left >= block; left -= block) {
    draw(&state, &law, &a, &b, &bits);
    total += a + b;
  }
  memcpy(word[0], &total, sizeof(total));
  for (size_t i = 0; i < CV_SAMPLER_LANES; i++) {
    result += word[0][i];
  }
  if (left > 0) {
    draw(&state, &law, &a, &b, &bits);
    memcpy(word[0], &a, sizeof(a));
    memcpy(word[1], &b, sizeof(b));
    memcpy(word[2], &bits, sizeof(bits));
    for (size_t i = 0; i < left / 2; i++) {
      result += word[0][i] + word[1][i];
    }
    size_t odd = left / 2;
    result += left % 2 == 0 ? 0 : word[word[2][odd] >> 1 & 1][odd];
  }
  cv_simd_store(&state, sampler);
  return result - count * base;
}

uint64_t cv_clipped_normal_plain(struct cv_sampler *sampler, uint64_t count, double mean, double sd) {
  return sum(sampler, count, mean, sd);
}

#ifdef __x86_64__
CV_TARGET_AVX2 uint64_t cv_clipped_normal_avx2(struct cv_sampler *sampler, uint64_t count, double mean, double sd) {
  return sum(sampler, count, mean, sd);
}

CV_TARGET_AVX512 uint64_t cv_clipped_normal_avx512(struct cv_sampler *sampler, uint64_t count, double mean, double sd) {
  return sum(sampler, count, mean, sd);
}
#endif
