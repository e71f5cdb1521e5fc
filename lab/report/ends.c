/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/report/ends.h"

#include <math.h>
#include <stdlib.h>

static int by_height(const void *a, const void *b) {
  const struct cv_lab_end *one = a, *other = b;
  if (one->at != other->at) {
    return one->at < other->at ? -1 : 1;
  }
  return one->series < other->series ? -1 : 1;
}

/* Places a run of names that touch each other: in the middle of their ends. */
static double start_of(const struct cv_lab_end *end, size_t n, double apart) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    sum += end[i].at - (double)i * apart;
  }
  double start = sum / (double)n, most = 1 - (double)(n - 1) * apart;
  return fmax(0, fmin(start, most));
}

bool cv_lab_ends_place(struct cv_lab_end *end, size_t n, double apart) {
  bool is_near = true;
  qsort(end, n, sizeof(*end), by_height);
  /* Every name joins the run below it as long as the two would touch; the runs are those of least squares. */
  for (size_t i = 0; i < n; i++) {
    size_t first = i;
    double start = start_of(end + i, 1, apart);
    while (first > 0 && end[first - 1].place + apart > start) {
      do {
        first--;
      } while (first > 0 && end[first].place - end[first - 1].place <= apart * (1 + 1e-9));
      start = start_of(end + first, i - first + 1, apart);
    }
    for (size_t j = first; j <= i; j++) {
      end[j].place = start + (double)(j - first) * apart;
    }
  }
  for (size_t i = 0; i < n; i++) {
    is_near = is_near && fabs(end[i].place - end[i].at) < apart;
  }
  return is_near;
}
