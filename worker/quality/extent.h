/* SPDX-License-Identifier: Apache-2.0 */
/* The range of the scores of a data set, and whether few of them stretch it. */
#ifndef CV_QUALITY_EXTENT_H
#define CV_QUALITY_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

/* So many of the largest and of the smallest scores are kept. */
enum { CV_EXTENT_KEPT = 1024 };

/* A heap whose root is the smallest of the largest values so far. */
struct cv_extent_end {
  uint32_t count;
  double value[CV_EXTENT_KEPT];
};

/* All zero is valid and empty. */
struct cv_extent {
  uint64_t scores;
  double low, high;         /* the smallest and largest; set if there is a score */
  uint64_t low_at, high_at; /* where each of them came first */
  uint32_t distinct;        /* 0, 1, 2, or 3: more than two different scores */
  double first, second;
  struct cv_extent_end top, bottom; /* `bottom` has the smallest scores, with the other sign */
};

/* What few scores do to the range. */
struct cv_stretch {
  double low, high; /* the other scores lie in this range */
  double rows;      /* their share of all scores, 0 to 1 */
  double range;     /* the share of the whole range that they take, 0 to 0.1 */
  double value;     /* the score farthest from them */
  uint64_t at;      /* where it came first */
};

/* Adds a finite score; `at` is for the caller, such as its line. */
void cv_extent_add(struct cv_extent *extent, double score, uint64_t at);
/*
 * True if the range without its ends is less than a tenth of the whole: without a 2000th of the scores at each end (at
 * least 1, at most CV_EXTENT_KEPT - 1). False for fewer than 20 scores, or if there are only two different ones, where
 * a rare one is no accident.
 */
bool cv_extent_is_stretched(const struct cv_extent *extent, struct cv_stretch *ret);

/* The position of a score in low .. high, 0 to 1; exact at both ends. low < high; all finite, and as far apart as
 * doubles can be. */
double cv_extent_position(double low, double high, double score);

#endif
