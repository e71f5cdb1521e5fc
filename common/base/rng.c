/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/rng.h"

#include <math.h>

#include "common/base/err.h"

uint64_t cv_rng_below(struct cv_rng *rng, uint64_t bound) {
  /* Lemire 2019: the high word of a product, rejecting the few low words that would favour some results. */
  __uint128_t product = (__uint128_t)cv_rng_u64(rng) * bound;
  if ((uint64_t)product < bound) {
    /* (2^64 - bound) mod bound = 2^64 mod bound, without 128-bit division; needed rarely. */
    uint64_t threshold = -bound % bound;
    while ((uint64_t)product < threshold) {
      product = (__uint128_t)cv_rng_u64(rng) * bound;
    }
  }
  return (uint64_t)(product >> 64);
}

double cv_rng_normal(struct cv_rng *rng) {
  double u, v, s;
  do {
    u = 2 * cv_rng_unit(rng) - 1;
    v = 2 * cv_rng_unit(rng) - 1;
    s = u * u + v * v;
  } while (s >= 1 || s == 0);
  return u * sqrt(-2 * log(s) / s);
}

static uint64_t rotate(uint64_t value, int by) {
  return (value << by) | (value >> (64 - by));
}

static void refill(struct cv_rng *rng) {
  struct cv_rng_seeded *seeded = (struct cv_rng_seeded *)rng;
  uint64_t *s = seeded->state;
  /* xoshiro256** (Blackman and Vigna 2018). From the end, because the buffer is read from there. */
  for (size_t i = CV_COUNT(seeded->buffer); i-- > 0;) {
    seeded->buffer[i] = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
  }
  rng->left = CV_COUNT(seeded->buffer);
}

void cv_rng_seeded_at(struct cv_rng_seeded *seeded, uint64_t at) {
  for (size_t i = 0; i < CV_COUNT(seeded->state); i++) {
    seeded->state[i] = cv_mix64(at + CV_RNG_GOLDEN * (i + 1));
  }
  seeded->rng = (struct cv_rng){.refill = refill, .word = seeded->buffer, .left = 0};
}

void cv_rng_seeded_init(struct cv_rng_seeded *seeded, uint64_t seed, uint64_t a, uint64_t b, uint64_t c) {
  /* Each of (a, b, c) gets a stream of its own: no draw depends on how many others were made before. */
  uint64_t at = cv_rng_branch(cv_rng_root(seed), 0, a);
  cv_rng_seeded_at(seeded, cv_rng_branch(cv_rng_branch(at, 1, b), 2, c));
}
