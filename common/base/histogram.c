/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/histogram.h"

#include "common/base/err.h"

const double CV_HISTOGRAM_DISK_S[] = {.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
_Static_assert(CV_COUNT(CV_HISTOGRAM_DISK_S) == CV_HISTOGRAM_DISK_BOUNDS, "the number in the header");

void cv_histogram_add(struct cv_histogram *histogram, double value) {
  size_t i = 0;
  /* Not `value > bound`: this way NaN ends above all bounds. */
  while (i < histogram->bounds && !(value <= histogram->bound[i])) {
    i++;
  }
  histogram->in[i]++;
  histogram->sum += value;
}

uint64_t cv_histogram_upto(const struct cv_histogram *histogram, size_t i) {
  uint64_t n = 0;
  for (size_t k = 0; k <= i; k++) {
    n += histogram->in[k];
  }
  return n;
}
