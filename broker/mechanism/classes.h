/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder: the mechanism classes, and the noise and sums that several of them need. */
#ifndef CV_BROKER_MECHANISM_CLASSES_H
#define CV_BROKER_MECHANISM_CLASSES_H

#include "broker/mechanism/mechanism.h"

enum { CV_LEVELS_MAX = 32 /* log2 of CV_RELEASES_END */ };

/* cv_mechanism_hybrid, ...: one per file. */
#define CV_MECHANISM_DECLARED(id, ...) extern const struct cv_mechanism_class cv_mechanism_##id;
CV_MECHANISMS(CV_MECHANISM_DECLARED)
#undef CV_MECHANISM_DECLARED

/* Guarantees that several mechanisms give. */
#define CV_GUARANTEE_ALWAYS "epsilon-differential privacy per arm for all releases together (event level), no horizon"
#define CV_GUARANTEE_HORIZON \
  "epsilon-differential privacy per arm for all releases up to the horizon together (event level)"

/* The parameter of a mechanism that must know the largest number of releases; 0: derived from the campaign. */
#define CV_HORIZON_RULE                                                                              \
  {                                                                                                  \
    .key = "horizon", .low = 1, .high = (double)(CV_RELEASES_END - 1), .whole = true, .fallback = 0, \
    .help = "the largest number of releases of one arm; 0: from limits.tokens"                       \
  }

/* One sample of Lap(b), in grid units: scale b CV_GRID / epsilon. b < 2^12. */
int64_t cv_mechanism_laplace(const struct cv_mechanism *self, uint64_t b, struct cv_rng *rng);
/* epsilon * parts / whole, rounded up; UINT64_MAX if it does not fit. */
uint64_t cv_mechanism_part_micro(const struct cv_mechanism_law *law, uint64_t parts, uint64_t whole);

/* Noise is unbounded; a sum that exceeds 64 bits wraps, with probability below e^-1000. */
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

/* n - N, where N is the largest power of two that is at most n; n > 0. */
static inline uint64_t cv_power_past(uint64_t n) {
  return n - (UINT64_C(1) << cv_log2_floor(n));
}

/* Sum of the noises at the one bits of `levels`. */
static inline int64_t cv_mechanism_noise_over(const int64_t *level, uint64_t levels) {
  int64_t sum = 0;
  for (; levels != 0; levels &= levels - 1) {
    sum = cv_wrapping_add(sum, level[__builtin_ctzll(levels)]);
  }
  return sum;
}

/* Clears the noises of the levels below `end`. */
static inline void cv_mechanism_noise_forget(int64_t *level, unsigned end) {
  for (unsigned i = 0; i < end; i++) {
    level[i] = 0;
  }
}

/*
 * The running noisy sum of segments.c: node 0 is the sum of the Laplace samples so far. Shared by mechanisms that
 * differ only in when they add a sample.
 */
enum cv_err cv_running_prepare(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why);
void cv_running_draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng);
bool cv_running_is_live(const struct cv_mechanism_law *law, uint64_t n, uint32_t node);
int64_t cv_running_total(const struct cv_mechanism *self, uint64_t n);
void cv_running_noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret);

/* All of epsilon is spent with the first release. */
uint64_t cv_spent_at_once(const struct cv_mechanism_law *law, uint64_t n);

/* binary.c: the tree of the horizon; a prefix uses one node per one bit of n. */
enum cv_err cv_binary_prepare(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why);
uint64_t cv_binary_spent_micro(const struct cv_mechanism_law *law, uint64_t n);

/*
 * kary.c: trees of k children with subtraction. The balanced digits of n on the `levels` lowest levels; every node has
 * one Lap(scale), and levels (k - 1)/2 nodes hold the noises that n uses.
 */
struct cv_kary {
  uint64_t n;
  uint32_t levels;
  uint64_t scale;
};

enum { CV_KARY_MAX = 99 };
#define CV_KARY_RULE(otherwise)                                                        \
  {                                                                                    \
    .key = "k", .low = 3, .high = CV_KARY_MAX, .whole = true, .fallback = (otherwise), \
    .help = "children of a node of the tree, odd; 0: the best for the horizon"         \
  }

/* CV_ERR_INVALID if k is even. */
CV_MUST_USE enum cv_err cv_kary_check(const struct cv_mechanism_law *law, struct cv_why *why);
/* Moves from n - 1 to n; true if the carry goes beyond the highest level. */
bool cv_kary_draw(struct cv_mechanism *self, int64_t *node, struct cv_kary tree, struct cv_rng *rng);
bool cv_kary_is_live(uint32_t k, struct cv_kary tree, uint32_t node);
int64_t cv_kary_total(uint32_t k, struct cv_kary tree, const int64_t *node);
struct cv_noise_group cv_kary_noise(uint32_t k, struct cv_kary tree);

#endif
