/* SPDX-License-Identifier: Apache-2.0 */
#include "common/prio/turboshake.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/err.h"

enum { LANES = 25, RATE_LANES = CV_TURBOSHAKE_RATE / 8, ROUNDS = 12 };

/* The last 12 of the 24 round constants of Keccak-f[1600]. */
static const uint64_t round_constant[ROUNDS] = {
    0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003,
    0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};

static inline uint64_t rotate(uint64_t x, unsigned by) {
  return by == 0 ? x : x << by | x >> (64 - by);
}

/* Chi over a row of five lanes. */
static inline void row(uint64_t *to, uint64_t b0, uint64_t b1, uint64_t b2, uint64_t b3, uint64_t b4) {
  to[0] = b0 ^ (~b1 & b2);
  to[1] = b1 ^ (~b2 & b3);
  to[2] = b2 ^ (~b3 & b4);
  to[3] = b3 ^ (~b4 & b0);
  to[4] = b4 ^ (~b0 & b1);
}

/* One round; the lane of column x and row y is a[x + 5 y]. Each LANE is the lane that rho and pi move there. */
static inline void keccak_round(const uint64_t *a, uint64_t *to, uint64_t constant) {
  uint64_t c[5], d[5];
#pragma GCC unroll 5
  for (int x = 0; x < 5; x++) {
    c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
  }
#pragma GCC unroll 5
  for (int x = 0; x < 5; x++) {
    d[x] = c[(x + 4) % 5] ^ rotate(c[(x + 1) % 5], 1);
  }
#define LANE(from, by) rotate(a[from] ^ d[(from) % 5], by)
  row(to, LANE(0, 0), LANE(6, 44), LANE(12, 43), LANE(18, 21), LANE(24, 14));
  row(to + 5, LANE(3, 28), LANE(9, 20), LANE(10, 3), LANE(16, 45), LANE(22, 61));
  row(to + 10, LANE(1, 1), LANE(7, 6), LANE(13, 25), LANE(19, 8), LANE(20, 18));
  row(to + 15, LANE(4, 27), LANE(5, 36), LANE(11, 10), LANE(17, 15), LANE(23, 56));
  row(to + 20, LANE(2, 62), LANE(8, 55), LANE(14, 39), LANE(15, 41), LANE(21, 2));
#undef LANE
  to[0] ^= constant;
}

static void permute(uint64_t *lane) {
  uint64_t a[LANES], b[LANES];
  memcpy(a, lane, sizeof(a));
  for (int i = 0; i < ROUNDS; i += 2) {
    keccak_round(a, b, round_constant[i]);
    keccak_round(b, a, round_constant[i + 1]);
  }
  memcpy(lane, a, sizeof(a));
}

static void take_block(struct cv_turboshake *state) {
  for (int i = 0; i < RATE_LANES; i++) {
    uint64_t word;
    memcpy(&word, state->block + 8 * i, sizeof(word));
    state->lane[i] ^= le64toh(word);
  }
  permute(state->lane);
}

static void give_block(struct cv_turboshake *state) {
  for (int i = 0; i < RATE_LANES; i++) {
    uint64_t word = htole64(state->lane[i]);
    memcpy(state->block + 8 * i, &word, sizeof(word));
  }
}

void cv_turboshake_init(struct cv_turboshake *ret) {
  memset(ret->lane, 0, sizeof(ret->lane));
  ret->at = 0;
}

void cv_turboshake_absorb(struct cv_turboshake *state, const void *bytes, size_t n) {
  const uint8_t *from = bytes;
  while (n > 0) {
    size_t some = sizeof(state->block) - state->at;
    some = n < some ? n : some;
    memcpy(state->block + state->at, from, some);
    state->at += some;
    from += some;
    n -= some;
    if (state->at == sizeof(state->block)) {
      take_block(state);
      state->at = 0;
    }
  }
}

void cv_turboshake_finish(struct cv_turboshake *state, uint8_t domain) {
  CV_REQUIRE(domain >= 0x01 && domain <= 0x7f);
  memset(state->block + state->at, 0, sizeof(state->block) - state->at);
  state->block[state->at] = domain;
  state->block[sizeof(state->block) - 1] ^= 0x80;
  take_block(state);
  give_block(state);
  state->at = 0;
}

void cv_turboshake_squeeze(struct cv_turboshake *state, void *ret, size_t n) {
  uint8_t *to = ret;
  while (n > 0) {
    if (state->at == sizeof(state->block)) {
      permute(state->lane);
      give_block(state);
      state->at = 0;
    }
    size_t some = sizeof(state->block) - state->at;
    some = n < some ? n : some;
    memcpy(to, state->block + state->at, some);
    state->at += some;
    to += some;
    n -= some;
  }
}
