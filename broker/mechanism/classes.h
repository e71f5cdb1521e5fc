/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: the rows of the table, and the noise and sums they all need. */
#ifndef CV_BROKER_MECHANISM_CLASSES_H
#define CV_BROKER_MECHANISM_CLASSES_H

#include "broker/mechanism/mechanism.h"

enum { CV_LEVELS_MAX = 32 /* log2 of CV_RELEASES_END */ };

extern const struct cv_mechanism_class cv_mechanism_batch;
extern const struct cv_mechanism_class cv_mechanism_binary;
extern const struct cv_mechanism_class cv_mechanism_binary_honaker;
extern const struct cv_mechanism_class cv_mechanism_doubling;
extern const struct cv_mechanism_class cv_mechanism_hybrid;
extern const struct cv_mechanism_class cv_mechanism_hybrid_printed;
extern const struct cv_mechanism_class cv_mechanism_kary;
extern const struct cv_mechanism_class cv_mechanism_none;
extern const struct cv_mechanism_class cv_mechanism_per_item;
extern const struct cv_mechanism_class cv_mechanism_segments;

/* Guarantees that several give. */
#define CV_GUARANTEE_ALWAYS "epsilon-differential privacy per arm for all releases together (event level), no horizon"
#define CV_GUARANTEE_HORIZON \
  "epsilon-differential privacy per arm for all releases up to the horizon together (event level)"

/* The parameter of a mechanism that must know how many releases there can be; 0: derived from the campaign. */
#define CV_HORIZON_RULE \
  { .key = "horizon", .low = 1, .high = (double)(CV_RELEASES_END - 1), .whole = true, .fallback = 0 }

/* One Lap(b), in grid units: scale b CV_GRID / epsilon. b < 2^12. */
int64_t cv_mechanism_laplace(const struct cv_mechanism *self, uint64_t b, struct cv_rng *rng);
/* epsilon parts/whole, rounded up; UINT64_MAX if it does not fit. */
uint64_t cv_mechanism_part_micro(const struct cv_mechanism_law *law, uint64_t parts, uint64_t whole);

/* Noise has no bound; a sum that leaves 64 bits wraps, which no one will see (probability below e^-1000). */
static inline int64_t cv_wrapping_add(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t cv_wrapping_subtract(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* floor(log2(n)), n > 0. */
static inline unsigned cv_log2_floor(uint64_t n) {
  return 63U - (unsigned)__builtin_clzll(n);
}

static inline bool cv_is_power_of_two(uint64_t n) {
  return (n & (n - 1)) == 0;
}

/* n - N, N the largest power of two up to n; n > 0. */
static inline uint64_t cv_past_power(uint64_t n) {
  return n - (UINT64_C(1) << cv_log2_floor(n));
}

/* Sum of the noises at the ones of `levels`. */
static inline int64_t cv_noise_over(const int64_t *level, uint64_t levels) {
  int64_t sum = 0;
  for (; levels != 0; levels &= levels - 1) {
    sum = cv_wrapping_add(sum, level[__builtin_ctzll(levels)]);
  }
  return sum;
}

/* Forgets the noises of the levels below `end`. */
static inline void cv_noise_forget(int64_t *level, unsigned end) {
  for (unsigned i = 0; i < end; i++) {
    level[i] = 0;
  }
}

/*
 * The running noisy sum of segments.c: node 0 is the sum of the Laplaces so far. For mechanisms that differ from it in
 * when they add one.
 */
enum cv_err cv_running_prepare(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why);
void cv_running_draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng);
bool cv_running_is_live(const struct cv_mechanism_law *law, uint64_t n, uint32_t node);
int64_t cv_running_total(const struct cv_mechanism *self, uint64_t n);
void cv_running_noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret);

/* All of epsilon, from the first release on. */
uint64_t cv_spent_at_once(const struct cv_mechanism_law *law, uint64_t n);

/* binary.c: the horizon's tree, of which a prefix uses one node for each one of n. */
enum cv_err cv_binary_prepare(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why);
uint64_t cv_binary_spent_micro(const struct cv_mechanism_law *law, uint64_t n);

#endif
