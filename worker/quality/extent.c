/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/extent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_SCORES = 20, ENDS = 2000 };

static void swap(double *a, double *b) {
  double kept = *a;
  *a = *b;
  *b = kept;
}

static void sift_up(struct cv_extent_end *end, uint32_t i) {
  for (; i > 0 && end->value[i] < end->value[(i - 1) / 2]; i = (i - 1) / 2) {
    swap(&end->value[i], &end->value[(i - 1) / 2]);
  }
}

static void sift_down(struct cv_extent_end *end) {
  for (uint32_t i = 0, child = 1; child < end->count; i = child, child = 2 * i + 1) {
    child += child + 1 < end->count && end->value[child + 1] < end->value[child];
    if (!(end->value[child] < end->value[i])) {
      return;
    }
    swap(&end->value[child], &end->value[i]);
  }
}

static void keep(struct cv_extent_end *end, double value) {
  if (end->count < CV_EXTENT_KEPT) {
    end->value[end->count] = value;
    sift_up(end, end->count++);
  } else if (value > end->value[0]) {
    end->value[0] = value;
    sift_down(end);
  }
}

static bool differ(double a, double b) {
  return a < b || a > b;
}

static void count_distinct(struct cv_extent *extent, double score) {
  if (extent->distinct == 0) {
    extent->first = score;
    extent->distinct = 1;
  } else if (extent->distinct == 1 && differ(score, extent->first)) {
    extent->second = score;
    extent->distinct = 2;
  } else if (extent->distinct == 2 && differ(score, extent->first) && differ(score, extent->second)) {
    extent->distinct = 3;
  }
}

void cv_extent_add(struct cv_extent *extent, double score, uint64_t at) {
  if (extent->scores == 0 || score < extent->low) {
    extent->low = score;
    extent->low_at = at;
  }
  if (extent->scores == 0 || score > extent->high) {
    extent->high = score;
    extent->high_at = at;
  }
  count_distinct(extent, score);
  keep(&extent->top, score);
  keep(&extent->bottom, -score);
  extent->scores++;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* The largest value of an end that is left without the `n` largest. */
static double without(const struct cv_extent_end *end, uint32_t n) {
  struct cv_extent_end sorted = *end;
  qsort(sorted.value, sorted.count, sizeof(*sorted.value), by_size);
  return sorted.value[n];
}

/* Half the width, since the width of a range may be more than a double can hold. */
static double half_width(double low, double high) {
  return high / 2 - low / 2;
}

bool cv_extent_is_stretched(const struct cv_extent *extent, struct cv_stretch *ret) {
  uint64_t ends = (extent->scores + ENDS - 1) / ENDS;
  if (extent->scores < LEAST_SCORES || extent->distinct < 3) {
    return false;
  }
  ends = ends < CV_EXTENT_KEPT ? ends : CV_EXTENT_KEPT - 1;
  double low = -without(&extent->bottom, (uint32_t)ends), high = without(&extent->top, (uint32_t)ends);
  double share = half_width(low, high) / half_width(extent->low, extent->high);
  if (!(share < 0.1)) {
    return false;
  }
  bool is_high = half_width(high, extent->high) > half_width(extent->low, low);
  *ret = (struct cv_stretch){.low = low,
                             .high = high,
                             .rows = 1 - 2 * (double)ends / (double)extent->scores,
                             .range = share,
                             .value = is_high ? extent->high : extent->low,
                             .at = is_high ? extent->high_at : extent->low_at};
  return true;
}

double cv_extent_position(double low, double high, double score) {
  double width = high - low;
  return isfinite(width) ? (score - low) / width : half_width(low, score) / half_width(low, high);
}
