/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/judge/statistic.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

enum { GROUPS = 24 };

#define SIGN UINT64_C(0x8000000000000000)

/* The probability of a normal variable beyond one standard deviation. */
#define ONE_ERROR 0.15865525393145705

const char *const cv_lab_statistics[] = {"mean", "median-of-means", "root-mean-square", "median", NULL};

const char *cv_lab_statistic_bar(enum cv_lab_statistic statistic) {
  static const char *const bars[] = {
      [CV_LAB_MEAN] = "one standard error of the mean to each side",
      [CV_LAB_MEDIAN_OF_MEANS] = "Gini's mean difference of group means on each side of their median",
      [CV_LAB_ROOT_MEAN_SQUARE] = "one standard error of the root mean square to each side",
      [CV_LAB_MEDIAN] = "68 % interval of the median",
  };
  return bars[statistic];
}

/* A compensated sum (Neumaier 1974): `low` collects the rounding errors of `high`. */
struct sum {
  double high, low;
};

static void add(struct sum *sum, double value) {
  double next = sum->high + value;
  sum->low += fabs(sum->high) >= fabs(value) ? sum->high - next + value : value - next + sum->high;
  sum->high = next;
}

static double total(const struct sum *sum) {
  return sum->high + sum->low;
}

struct sample {
  cv_lab_sample_fn *at;
  const void *data;
  size_t n;
  bool is_squared;
};

static double number(const struct sample *sample, size_t i) {
  double value = sample->at(sample->data, i);
  return sample->is_squared ? value * value : value;
}

static struct cv_lab_summary with_bar(double mean, double se, uint64_t n) {
  return (struct cv_lab_summary){.mean = mean, .se = se, .low = mean - se, .high = mean + se, .n = n};
}

static struct cv_lab_summary mean_of(const struct sample *sample, uint64_t n) {
  struct sum sum = {0}, squares = {0};
  for (size_t i = 0; i < sample->n; i++) {
    double value = number(sample, i);
    add(&sum, isnan(value) ? 0 : value);
  }
  /* A second pass over the deviations: a sum of squares minus the squared sum would cancel. */
  double mean = total(&sum) / (double)n;
  for (size_t i = 0; i < sample->n; i++) {
    double value = number(sample, i);
    add(&squares, isnan(value) ? 0 : (value - mean) * (value - mean));
  }
  return with_bar(mean, n < 2 ? (double)NAN : sqrt(total(&squares) / (double)(n - 1) / (double)n), n);
}

static struct cv_lab_summary root_mean_square_of(struct sample *sample, uint64_t n) {
  sample->is_squared = true;
  struct cv_lab_summary square = mean_of(sample, n);
  double root = sqrt(square.mean);
  return with_bar(root, square.se == 0 ? 0 : square.se / (2 * root), n); /* d sqrt(s) = ds/(2 sqrt(s)) */
}

/* The means of `groups` groups of consecutive values, missing ones left out. */
static void group_means(const struct sample *sample, uint64_t n, size_t groups, double *ret) {
  size_t i = 0;
  for (size_t group = 0; group < groups; group++) {
    size_t count = (group + 1) * n / groups - group * n / groups;
    struct sum sum = {0};
    for (size_t taken = 0; taken < count; i++) {
      double value = number(sample, i);
      if (!isnan(value)) {
        add(&sum, value);
        taken++;
      }
    }
    ret[group] = total(&sum) / (double)count;
  }
}

static size_t groups_of(uint64_t n) {
  return n < 2 * GROUPS ? n : GROUPS;
}

static struct cv_lab_summary median_of_means(const struct sample *sample, uint64_t n) {
  double mean[2 * GROUPS];
  size_t groups = groups_of(n), below = 0, above = 0;
  group_means(sample, n, groups, mean);
  cv_lab_sort(mean, groups);
  double median = cv_lab_quantile(mean, groups, .5);
  while (below < groups && mean[below] < median) {
    below++;
  }
  while (above < groups && mean[groups - 1 - above] > median) {
    above++;
  }
  /* Gini's mean difference of normal variables is 2/sqrt(pi) deviations; it is less sensitive to outliers than
   * squares. */
  double deviation = cv_lab_gini(mean, groups) * sqrt(M_PI) / 2;
  return (struct cv_lab_summary){
      .mean = median,
      .se = deviation * sqrt(M_PI / (2 * (double)groups)),
      .low = median - cv_lab_gini(mean, below),
      .high = median + cv_lab_gini(mean + groups - above, above),
      .n = n,
  };
}

/* ---- medians ---- */

/* A number that is ordered like the value. */
static uint64_t order_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return (bits & SIGN) != 0 ? ~bits : bits | SIGN;
}

static double value_of(uint64_t order) {
  uint64_t bits = (order & SIGN) != 0 ? order & ~SIGN : ~order;
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static uint64_t count_up_to(cv_lab_sample_fn *at, const void *data, size_t n, uint64_t order) {
  uint64_t count = 0;
  for (size_t i = 0; i < n; i++) {
    double value = at(data, i);
    count += !isnan(value) && order_of(value) <= order;
  }
  return count;
}

/* The k-th smallest value, from 0, by bisection: exact after a pass for each bit, without a sorted copy. */
static double order_statistic(cv_lab_sample_fn *at, const void *data, size_t n, uint64_t k) {
  uint64_t low = 0, high = UINT64_MAX;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (count_up_to(at, data, n, middle) > k) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return value_of(low);
}

static uint64_t count_present(cv_lab_sample_fn *at, const void *data, size_t n) {
  uint64_t present = 0;
  for (size_t i = 0; i < n; i++) {
    present += !isnan(at(data, i));
  }
  return present;
}

double cv_lab_quantile_of(cv_lab_sample_fn *at, const void *data, size_t n, double q) {
  uint64_t present = count_present(at, data, n);
  if (present == 0) {
    return (double)NAN;
  }
  double place = q * (double)(present - 1), part = place - floor(place);
  const double around[] = {order_statistic(at, data, n, (uint64_t)place),
                           order_statistic(at, data, n, (uint64_t)ceil(place))};
  return part > 0 ? around[0] + part * (around[1] - around[0]) : around[0];
}

/* The probability of `heads` or more; at least 1 of them. */
static double tail_of(uint64_t heads, uint64_t n, double p) {
  return gsl_cdf_binomial_Q((unsigned)(heads - 1), p, (unsigned)n);
}

uint64_t cv_lab_heads_least(uint64_t n, double p, double tail) {
  uint64_t heads = (uint64_t)((double)n * p) + 1;
  while (heads <= n && tail_of(heads, n, p) > tail) {
    heads++;
  }
  return heads;
}

static struct cv_lab_summary median_of(const struct sample *sample, uint64_t n) {
  uint64_t heads = cv_lab_heads_least(n, .5, ONE_ERROR);
  struct cv_lab_summary found = with_bar(cv_lab_quantile_of(sample->at, sample->data, sample->n, .5), (double)NAN, n);
  if (heads <= n) {
    found.low = order_statistic(sample->at, sample->data, sample->n, n - heads);
    found.high = order_statistic(sample->at, sample->data, sample->n, heads - 1);
    found.se = (found.high - found.low) / 2 / gsl_cdf_ugaussian_Qinv(tail_of(heads, n, .5));
  }
  return found;
}

struct cv_lab_summary cv_lab_summary_of(enum cv_lab_statistic statistic, cv_lab_sample_fn *at, const void *data,
                                        size_t n) {
  struct sample sample = {.at = at, .data = data, .n = n};
  uint64_t present = count_present(at, data, n);
  if (present == 0) {
    return with_bar((double)NAN, (double)NAN, 0);
  }
  switch (statistic) {
    case CV_LAB_MEDIAN_OF_MEANS:
      return median_of_means(&sample, present);
    case CV_LAB_ROOT_MEAN_SQUARE:
      return root_mean_square_of(&sample, present);
    case CV_LAB_MEDIAN:
      return median_of(&sample, present);
    default:
      return mean_of(&sample, present);
  }
}

double cv_lab_freedom(enum cv_lab_statistic statistic, uint64_t n) {
  uint64_t numbers = statistic == CV_LAB_MEDIAN_OF_MEANS ? groups_of(n) : n;
  return numbers < 2 ? 0 : (double)(numbers - 1);
}

/* A value is in n - 1 differences, with a plus sign where the other value is smaller: one pass instead of all pairs. */
double cv_lab_gini(const double *ascending, size_t n) {
  struct sum sum = {0};
  if (n < 2) {
    return (double)NAN;
  }
  for (size_t i = 0; i < n; i++) {
    add(&sum, (2 * (double)i + 1 - (double)n) * ascending[i]);
  }
  return 2 * total(&sum) / ((double)n * (double)(n - 1));
}

double cv_lab_quantile(const double *ascending, size_t n, double q) {
  CV_REQUIRE(n > 0 && q >= 0 && q <= 1);
  double place = q * (double)(n - 1);
  size_t below = (size_t)place;
  double part = place - (double)below;
  return part > 0 ? ascending[below] + part * (ascending[below + 1] - ascending[below]) : ascending[below];
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void cv_lab_sort(double *value, size_t n) {
  qsort(value, n, sizeof(*value), compare);
}
