/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/paired.h"

#include <math.h>
#include <stdlib.h>

enum { TIMES_MAX = 2000, TIMES_MIN = 400, DRAWS = 4000000 };

static const uint64_t SEED = 20260102;

/* One of both sides: its values, and their order. */
struct column {
  const double *value;
  uint32_t *order; /* owned */
};

static int by_value(const void *a, const void *b, void *data) {
  const double *value = data;
  double x = value[*(const uint32_t *)a], y = value[*(const uint32_t *)b];
  return x < y ? -1 : x > y;
}

static bool init(struct column *column, const double *value, uint32_t n) {
  *column = (struct column){.value = value, .order = calloc(n, sizeof(*column->order))};
  for (uint32_t i = 0; i < n && column->order != NULL; i++) {
    column->order[i] = i;
  }
  if (column->order != NULL) {
    qsort_r(column->order, n, sizeof(*column->order), by_value, (void *)(uintptr_t)value);
  }
  return column->order != NULL;
}

/* The value of this rank, from 0, where each value is there as often as `times` says. */
static double at_rank(const struct column *column, const uint32_t *times, uint32_t rank) {
  uint32_t i = 0;
  for (uint32_t before = times[column->order[0]]; before <= rank; before += times[column->order[i]]) {
    i++;
  }
  return column->value[column->order[i]];
}

static double median(const struct column *column, const uint32_t *times, uint32_t n) {
  return (at_rank(column, times, (n - 1) / 2) + at_rank(column, times, n / 2)) / 2;
}

static double ratio(double own, double other) {
  return own > 0 || other > 0 ? other / own : 1;
}

static double change(double own, double other) {
  return other - own;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static uint32_t times_of(uint32_t n) {
  uint32_t most = DRAWS / n;
  return most > TIMES_MAX ? TIMES_MAX : most < TIMES_MIN ? TIMES_MIN : most;
}

/* The bootstrap's ends, and in the middle what the pairs themselves say. */
static struct cv_range resample(const struct column *own, const struct column *other, uint32_t n, uint32_t *times,
                                double *result, double (*of)(double own, double other)) {
  uint32_t all = times_of(n), out = (uint32_t)(all * (1 - CV_PAIRED_LEVEL) / 2);
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, SEED, 0, n, 0);
  for (uint32_t t = 0; t < all; t++) {
    for (uint32_t i = 0; i < n; i++) {
      times[i] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
      times[cv_rng_below(&rng.rng, n)]++;
    }
    result[t] = of(median(own, times, n), median(other, times, n));
  }
  for (uint32_t i = 0; i < n; i++) {
    times[i] = 1;
  }
  qsort(result, all, sizeof(*result), compare);
  return (struct cv_range){result[out], of(median(own, times, n), median(other, times, n)), result[all - 1 - out]};
}

static struct cv_range pair(const double *own, const double *other, uint32_t n,
                            double (*of)(double own, double other)) {
  struct cv_range range = {(double)NAN, (double)NAN, (double)NAN};
  if (n < CV_PAIRED_LEAST) {
    return range;
  }
  struct column mine = {0}, theirs = {0};
  uint32_t *times = calloc(n, sizeof(*times));
  double *result = calloc(times_of(n), sizeof(*result));
  bool good = init(&mine, own, n) && init(&theirs, other, n) && times != NULL && result != NULL;
  if (good) {
    range = resample(&mine, &theirs, n, times, result, of);
  }
  free(mine.order);
  free(theirs.order);
  free(times);
  free(result);
  return range;
}

struct cv_range cv_paired_ratio(const double *own, const double *other, uint32_t n) {
  return pair(own, other, n, ratio);
}

struct cv_range cv_paired_change(const double *own, const double *other, uint32_t n) {
  return pair(own, other, n, change);
}
