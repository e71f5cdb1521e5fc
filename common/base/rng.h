/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random bits behind one interface, `struct cv_rng *`. The daemons pass OpenSSL's generator (common/crypto/crypto.h);
 * tests, the lab and simulated workers pass the seeded generator below.
 */
#ifndef CV_BASE_RNG_H
#define CV_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct cv_rng {
  /* Makes at least one fresh word available: sets `word` and `left`. */
  void (*refill)(struct cv_rng *rng);
  uint64_t *word; /* the generator's buffer; each word is wiped when drawn */
  size_t left;    /* words not drawn yet, at word[0] .. word[left - 1] */
};

/* 64 uniform bits. */
static inline uint64_t cv_rng_u64(struct cv_rng *rng) {
  if (rng->left == 0) {
    rng->refill(rng);
  }
  uint64_t *at = &rng->word[--rng->left];
  uint64_t bits = *at;
  *at = 0;
  return bits;
}

/* Uniform in [0, bound), exactly; bound > 0. */
uint64_t cv_rng_below(struct cv_rng *rng, uint64_t bound);
/* Uniform in [0, 1): 53 bits. */
static inline double cv_rng_unit(struct cv_rng *rng) {
  return (double)(cv_rng_u64(rng) >> 11) * 0x1p-53;
}
/* Standard normal (Marsaglia's polar method). For simulated qualities, never for privacy noise. */
double cv_rng_normal(struct cv_rng *rng);

/*
 * xoshiro256** (Blackman and Vigna 2018), reproducible bit by bit. (seed, a, b, c) names an independent stream; by
 * convention a is the purpose and b, c the place in it (arm and position, replicate and arm, ...).
 */
struct cv_rng_seeded {
  struct cv_rng rng;
  uint64_t state[4];
  uint64_t buffer[4];
};

enum cv_rng_purpose {
  CV_RNG_INSTANCE = 1,
  CV_RNG_SCORE,
  CV_RNG_ROWS,
  CV_RNG_NOISE,
  CV_RNG_POLICY,
  CV_RNG_ARRIVAL,
  CV_RNG_PRIVATIZER,
  CV_RNG_GRAPH,
  CV_RNG_NOISE_COBROKER,
  CV_RNG_ROUNDING,
};

/* `seeded` must not move afterwards. */
void cv_rng_seeded_init(struct cv_rng_seeded *seeded, uint64_t seed, uint64_t a, uint64_t b, uint64_t c);

/* A 64-bit mixing function (splitmix64's finaliser): equal inputs give equal outputs, all bits depend on all bits. */
static inline uint64_t cv_mix64(uint64_t value) {
  value ^= value >> 30;
  value *= UINT64_C(0xbf58476d1ce4e5b9);
  value ^= value >> 27;
  value *= UINT64_C(0x94d049bb133111eb);
  return value ^ (value >> 31);
}

/*
 * Derives a stream step by step, for callers that need many streams that differ only in the last parts:
 *   at = cv_rng_root(seed); at = cv_rng_branch(at, 0, a); ... 1, b; ... 2, c; cv_rng_seeded_at(&seeded, at)
 * gives the same stream as cv_rng_seeded_init(&seeded, seed, a, b, c).
 */
#define CV_RNG_GOLDEN UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t cv_rng_root(uint64_t seed) {
  return cv_mix64(seed + CV_RNG_GOLDEN);
}
static inline uint64_t cv_rng_branch(uint64_t at, uint64_t index, uint64_t part) {
  return cv_mix64(at + CV_RNG_GOLDEN + cv_mix64(part + CV_RNG_GOLDEN * (index + 2)));
}
void cv_rng_seeded_at(struct cv_rng_seeded *seeded, uint64_t at);

#endif
