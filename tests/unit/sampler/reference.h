/* SPDX-License-Identifier: Apache-2.0 */
/* The generator of a sampler again, one lane at a time (xoshiro256++). Include after simulate/sampler/sampler.h. */
#ifndef CV_TESTS_SAMPLER_REFERENCE_H
#define CV_TESTS_SAMPLER_REFERENCE_H

struct reference {
  uint64_t state[4][CV_SAMPLER_LANES];
};

static inline uint64_t rotated(uint64_t value, int by) {
  return value << by | value >> (64 - by);
}

static inline uint64_t lane_next(struct reference *from, size_t lane) {
  uint64_t s[4];
  for (size_t i = 0; i < 4; i++) {
    s[i] = from->state[i][lane];
  }
  uint64_t result = rotated(s[0] + s[3], 23) + s[0], t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotated(s[3], 45);
  for (size_t i = 0; i < 4; i++) {
    from->state[i][lane] = s[i];
  }
  return result;
}

#endif
