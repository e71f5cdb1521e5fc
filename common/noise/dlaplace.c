/* SPDX-License-Identifier: Apache-2.0 */
#include "common/noise/dlaplace.h"

typedef __uint128_t wide;

/* Unused bits of a random word; one draw takes 16 bits at a time and discards the rest. */
struct bits {
  struct cv_rng *rng;
  uint64_t word;
  unsigned left;
};

static inline uint64_t take16(struct bits *bits) {
  if (bits->left == 0) {
    bits->word = cv_rng_u64(bits->rng);
    bits->left = 4;
  }
  uint64_t taken = bits->word & 0xffff;
  bits->word >>= 16;
  bits->left--;
  return taken;
}

/*
 * True with probability num/den, num <= den < 2^112. Reads a uniform real r in [0,1) 16 bits at a time, r = (w +
 * r')/2^16, until r < num/den is decided, that is r' < (2^16 num - w den)/den: nearly always at once. Otherwise it
 * continues with r' and the numerator of the right-hand side.
 */
static inline bool bernoulli(struct bits *bits, wide num, wide den) {
  for (;;) {
    wide want = num << 16;
    wide have = take16(bits) * den;
    if (want <= have) {
      return false;
    }
    num = want - have;
    if (num >= den) {
      return true;
    }
  }
}

/* Algorithm 1 for num <= den: the first k at which Bernoulli(num/(den k)) fails is odd with probability
 * exp(-num/den). */
static inline bool exp_minus(struct bits *bits, uint64_t num, uint64_t den) {
  uint64_t k = 1;
  while (bernoulli(bits, num, (wide)den * k)) {
    k++;
  }
  return k % 2 == 1;
}

/*
 * Algorithm 1 for exp(-1), where k trials in a row succeed with probability 1/k!. One r, uniform below 6! = 720,
 * decides the first six: k succeed if r < 6!/k!, that is below 720, 360, 120, 30, 6, 1. The first failure is the third
 * for r in [120, 360), the fifth in [6, 30). Rejecting low products below 2^16 mod 720 = 16 makes r uniform (Lemire
 * 2019).
 */
static inline bool exp_minus_one(struct bits *bits) {
  uint64_t product;
  do {
    product = take16(bits) * 720;
  } while ((product & 0xffff) < 16);
  uint64_t r = product >> 16;
  if (r == 0) {
    uint64_t k = 7;
    while (cv_rng_below(bits->rng, k) == 0) {
      k++;
    }
    return k % 2 == 1;
  }
  return r - 120 < 240 || r - 6 < 24;
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
  while (b != 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

enum cv_err cv_dlaplace_init(struct cv_dlaplace *ret, uint64_t p, uint64_t q) {
  if (p == 0 || q == 0) {
    return CV_ERR_INVALID;
  }
  uint64_t divisor = greatest_common_divisor(p, q);
  p /= divisor;
  q /= divisor;
  if (p >= CV_DLAPLACE_P_END) {
    return CV_ERR_LIMIT;
  }
  *ret = (struct cv_dlaplace){.p = p, .q = q, .biased = (UINT64_C(1) << 63) % p};
  return CV_OK;
}

int64_t cv_dlaplace_draw(const struct cv_dlaplace *law, struct cv_rng *rng) {
  const uint64_t low_bits = (UINT64_C(1) << 63) - 1;
  struct bits bits = {.rng = rng};
  for (;;) {
    /* One word: a sign, and 63 bits for u uniform below p. */
    uint64_t word = cv_rng_u64(rng);
    wide product = (wide)(word >> 1) * law->p;
    uint64_t u = (uint64_t)(product >> 63);
    if (((uint64_t)product & low_bits) < law->biased || !exp_minus(&bits, u, law->p)) {
      continue;
    }
    /* v is geometric with P(>= k) = exp(-k), cut at 1023. */
    uint64_t v = 0;
    while (v < 1023 && exp_minus_one(&bits)) {
      v++;
    }
    /* u + p v is geometric, P(>= x) = exp(-x/p); p < 2^53 and v < 2^10 keep it below 2^63. */
    uint64_t size = u + law->p * v;
    if (law->q != 1) {
      size /= law->q;
    }
    bool negative = word % 2 == 1;
    if (negative && size == 0) {
      continue; /* otherwise zero would be drawn twice as often */
    }
    return negative ? -(int64_t)size : (int64_t)size;
  }
}

bool cv_bernoulli_exp(struct cv_rng *rng, uint64_t p, uint64_t q) {
  CV_REQUIRE(q > 0);
  struct bits bits = {.rng = rng};
  for (uint64_t whole = p / q; whole > 0; whole--) {
    if (!exp_minus_one(&bits)) {
      return false;
    }
  }
  return exp_minus(&bits, p % q, q);
}
