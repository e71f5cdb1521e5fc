/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: the rows of the table, and the noise and sums they all need. */
#ifndef CV_BROKER_MECHANISM_CLASSES_H
#define CV_BROKER_MECHANISM_CLASSES_H

#include "broker/mechanism/mechanism.h"

/* n stays below this, so that every scale fits the sampler and a damaged count is seen. */
#define CV_RELEASES_END (UINT64_C(1) << 48)

extern const struct cv_mechanism_class cv_mechanism_hybrid;
extern const struct cv_mechanism_class cv_mechanism_none;

/* One Lap(b), in grid units: scale b CV_GRID / epsilon. */
int64_t cv_mechanism_laplace(const struct cv_mechanism *self, uint64_t b, struct cv_rng *rng);

/* floor(log2(n)), n > 0. */
static inline unsigned cv_log2_floor(uint64_t n) {
  return 63U - (unsigned)__builtin_clzll(n);
}

/* Noise has no bound; a sum that leaves 64 bits wraps, which no one will see (probability below e^-1000). */
static inline int64_t cv_wrapping_add(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

#endif
