/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scores on the grid. A score w in [0,1] travels as the integer round(w * CV_GRID) in [0, CV_GRID], so that sums are
 * exact and one token changes a sum by CV_GRID at most. Only the third-party divides.
 */
#ifndef CV_BASE_GRID_H
#define CV_BASE_GRID_H

#include <stdint.h>

#define CV_GRID_BITS 20
#define CV_GRID      (INT64_C(1) << CV_GRID_BITS)
#define CV_MICRO     INT64_C(1000000)

/* The nearest grid point of a score. Scores outside [0,1] are clipped; NaN becomes 0. */
static inline int64_t cv_grid_from(double score) {
  if (!(score > 0)) {
    return 0;
  }
  return score >= 1 ? CV_GRID : (int64_t)(score * (double)CV_GRID + 0.5);
}

static inline double cv_grid_to(int64_t value) {
  return (double)value / (double)CV_GRID;
}

#endif
