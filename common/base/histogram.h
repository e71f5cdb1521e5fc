/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram: how many values fell between given bounds, and their sum. Pure; adding a value allocates nothing. */
#ifndef CV_BASE_HISTOGRAM_H
#define CV_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { CV_HISTOGRAM_BOUNDS = 24 };

struct cv_histogram {
  const double *bound; /* `bounds` of them, ascending; borrowed */
  size_t bounds;       /* 1 .. CV_HISTOGRAM_BOUNDS */
  /* private */
  uint64_t in[CV_HISTOGRAM_BOUNDS + 1]; /* values up to bound i and above the one before; the last: above all */
  double sum;
};

/* A duration on a disk, in seconds: from half a millisecond to ten seconds. */
extern const double CV_HISTOGRAM_DISK_S[];
enum { CV_HISTOGRAM_DISK_BOUNDS = 14 };

/* Counts one value. A value equal to a bound is not above it; NaN is above all. */
void cv_histogram_add(struct cv_histogram *histogram, double value);
/* The number of values up to bound `i`; with i == bounds the number of all values. */
uint64_t cv_histogram_upto(const struct cv_histogram *histogram, size_t i);

#endif
