/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/judge/summary.h"

#include <math.h>
#include <stdio.h>

#include "lab/run/formula.h"

struct place {
  size_t series, point;
};

/* A sample over the replicates: the value at place a, or its difference to that at place b. */
struct sample {
  const struct cv_lab_dataset *dataset;
  size_t metric;
  struct place a, b;
  double factor;
};

static double number(const struct sample *sample, size_t replicate, struct place at) {
  return cv_lab_value(sample->dataset, replicate, at.series, at.point, sample->metric);
}

static double single(const void *data, size_t i) {
  const struct sample *sample = data;
  return number(sample, i, sample->a);
}

static double difference(const void *data, size_t i) {
  const struct sample *sample = data;
  return number(sample, i, sample->a) - sample->factor * number(sample, i, sample->b);
}

static double difference_of_squares(const void *data, size_t i) {
  const struct sample *sample = data;
  return pow(number(sample, i, sample->a), 2) - pow(sample->factor * number(sample, i, sample->b), 2);
}

struct cv_lab_summary cv_lab_summarise(const struct cv_lab_dataset *dataset, size_t series, size_t point,
                                       size_t metric) {
  struct sample sample = {.dataset = dataset, .metric = metric, .a = {series, point}};
  return cv_lab_summary_of(dataset->experiment->statistic, single, &sample, dataset->replicates);
}

enum cv_err cv_lab_found(const struct cv_lab_dataset *dataset, size_t series, size_t point, size_t metric,
                         struct cv_lab_summary *ret) {
  if (dataset->experiment->one[series].formula == NULL) {
    *ret = cv_lab_summarise(dataset, series, point, metric);
    return CV_OK;
  }
  double value;
  CV_TRY(cv_lab_formula_value(dataset->experiment, series, point, metric, &value));
  *ret = (struct cv_lab_summary){.mean = value, .se = (double)NAN, .low = value, .high = value};
  return CV_OK;
}

/* The difference of two root mean squares: a - b = (a^2 - b^2)/(a + b), where the difference of squares is a mean, so
 * that its error is known. */
static struct cv_lab_summary compare_roots(const struct sample *sample) {
  const struct cv_lab_dataset *of = sample->dataset;
  struct cv_lab_summary squares = cv_lab_summary_of(CV_LAB_MEAN, difference_of_squares, sample, of->replicates);
  double sum = cv_lab_summarise(of, sample->a.series, sample->a.point, sample->metric).mean +
               sample->factor * cv_lab_summarise(of, sample->b.series, sample->b.point, sample->metric).mean;
  if (sum > 0) {
    squares.mean /= sum;
    squares.se /= sum;
  }
  squares.low = squares.mean - squares.se;
  squares.high = squares.mean + squares.se;
  return squares;
}

struct cv_lab_summary cv_lab_compare(const struct cv_lab_dataset *dataset, size_t series_a, size_t point_a,
                                     size_t series_b, size_t point_b, double factor, size_t metric) {
  struct sample sample = {
      .dataset = dataset, .metric = metric, .a = {series_a, point_a}, .b = {series_b, point_b}, .factor = factor};
  if (dataset->experiment->statistic == CV_LAB_ROOT_MEAN_SQUARE) {
    return compare_roots(&sample);
  }
  /* Paired: replicates share instance and scores, whose variation cancels in the difference. */
  return cv_lab_summary_of(dataset->experiment->statistic, difference, &sample, dataset->replicates);
}

uint64_t cv_lab_differing(const struct cv_lab_dataset *dataset, size_t series_a, size_t point_a, size_t series_b,
                          size_t point_b, size_t metric) {
  struct sample sample = {
      .dataset = dataset, .metric = metric, .a = {series_a, point_a}, .b = {series_b, point_b}, .factor = 1};
  uint64_t count = 0;
  for (size_t i = 0; i < dataset->replicates; i++) {
    double d = difference(&sample, i);
    count += !isnan(d) && d != 0;
  }
  return count;
}

/* ---- pairs and their signs ---- */

struct duel {
  const struct cv_lab_dataset *dataset;
  const struct cv_lab_side *a, *b;
  size_t metric;
};

static double number_of(const struct duel *duel, const struct cv_lab_side *side, size_t replicate) {
  return side->is_number ? side->number
                         : cv_lab_value(duel->dataset, replicate, side->series, side->point, duel->metric);
}

static double ratio_at(const void *data, size_t i) {
  const struct duel *duel = data;
  return number_of(duel, duel->a, i) / number_of(duel, duel->b, i);
}

static double gap_at(const void *data, size_t i) {
  const struct duel *duel = data;
  return number_of(duel, duel->a, i) - number_of(duel, duel->b, i);
}

struct cv_lab_signs cv_lab_signs_of(const struct cv_lab_dataset *dataset, const struct cv_lab_side *a,
                                    const struct cv_lab_side *b, double factor, size_t metric) {
  const struct duel duel = {.dataset = dataset, .a = a, .b = b, .metric = metric};
  struct cv_lab_signs signs = {.is_ratio = true};
  for (size_t i = 0; i < dataset->replicates; i++) {
    double one = number_of(&duel, a, i), other = number_of(&duel, b, i);
    if (isnan(one) || isnan(other)) {
      continue;
    }
    signs.n++;
    signs.less += one < factor * other;
    signs.more += one > factor * other;
    signs.is_ratio = signs.is_ratio && other > 0;
  }
  signs.equal = signs.n - signs.less - signs.more;
  cv_lab_sample_fn *at = signs.is_ratio ? ratio_at : gap_at;
  signs.median = cv_lab_quantile_of(at, &duel, dataset->replicates, .5);
  signs.low = cv_lab_quantile_of(at, &duel, dataset->replicates, .25);
  signs.high = cv_lab_quantile_of(at, &duel, dataset->replicates, .75);
  return signs;
}

static enum cv_err add_row(const struct cv_lab_dataset *dataset, size_t series, size_t point, size_t metric,
                           struct cv_lab_result *result) {
  const struct cv_lab_experiment *experiment = dataset->experiment;
  struct cv_lab_summary summary;
  CV_TRY(cv_lab_found(dataset, series, point, metric, &summary));
  if (!isfinite(summary.mean)) {
    return CV_OK; /* this policy has no such metric, or a formula is one of another metric */
  }
  struct cv_lab_row row = {.x = experiment->x[point],
                           .mean = summary.mean,
                           .se = summary.se,
                           .low = summary.low,
                           .high = summary.high,
                           .n = summary.n,
                           .is_asymptotic = cv_lab_formula_is_asymptotic(experiment->one[series].formula)};
  (void)snprintf(row.series, sizeof(row.series), "%s", experiment->one[series].name);
  (void)snprintf(row.metric, sizeof(row.metric), "%s", experiment->metric[metric].name);
  return cv_lab_result_add(result, &row);
}

enum cv_err cv_lab_dataset_rows(const struct cv_lab_dataset *dataset, struct cv_lab_result *result) {
  const struct cv_lab_experiment *experiment = dataset->experiment;
  for (size_t metric = 0; metric < experiment->metrics; metric++) {
    for (size_t series = 0; series < experiment->series; series++) {
      for (size_t point = 0; point < experiment->points; point++) {
        CV_TRY(add_row(dataset, series, point, metric, result));
      }
    }
  }
  return CV_OK;
}
