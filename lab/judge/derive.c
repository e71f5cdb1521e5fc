/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/judge/derive.h"

#include <stdio.h>
#include <string.h>

/* What is averaged: one side of all pairs, at the points from `from` to before `end`. */
struct side {
  const struct cv_lab_dataset *dataset;
  const struct cv_lab_terms *terms;
  bool is_other;
  size_t from, end; /* among the claim's points */
};

bool cv_lab_is_derived(const struct cv_lab_terms *terms) {
  return terms->average || terms->has_minus;
}

static size_t series_of(const struct side *side, size_t pair) {
  const struct cv_lab_terms *terms = side->terms;
  return side->is_other ? terms->pair[pair].other : terms->pair[pair].one;
}

static double value_at(const struct side *side, uint64_t replicate, size_t pair, size_t point) {
  const struct cv_lab_terms *terms = side->terms;
  double value = cv_lab_value(side->dataset, replicate, series_of(side, pair), point, terms->metric);
  size_t minus = side->is_other ? terms->minus.other : terms->minus.one;
  return terms->has_minus ? value - cv_lab_value(side->dataset, replicate, minus, point, terms->metric) : value;
}

static double average_of(const struct side *side, uint64_t replicate) {
  double sum = 0;
  for (size_t pair = 0; pair < side->terms->pairs; pair++) {
    for (size_t i = side->from; i < side->end; i++) {
      sum += value_at(side, replicate, pair, side->terms->point[i]);
    }
  }
  return sum / (double)(side->terms->pairs * (side->end - side->from));
}

static void put(const struct side *side, struct cv_lab_dataset *ret) {
  for (uint64_t replicate = 0; replicate < ret->replicates; replicate++) {
    cv_lab_dataset_set(ret, replicate, series_of(side, 0), side->terms->point[side->from], side->terms->metric,
                       average_of(side, replicate));
  }
}

/* The common beginning of the names of a side's series, up to a comma. */
static void name_side(const struct side *side, char *ret) {
  const struct cv_lab_terms *terms = side->terms;
  const struct cv_lab_series *series = side->dataset->experiment->one;
  const char *first = series[series_of(side, 0)].name;
  size_t n = strlen(first);
  for (size_t pair = 1; pair < terms->pairs; pair++) {
    const char *name = series[series_of(side, pair)].name;
    while (n > 0 && (strncmp(name, first, n) != 0 || (name[n] != '\0' && name[n] != ',') ||
                     (first[n] != '\0' && first[n] != ','))) {
      n--;
    }
  }
  const char *minus = series[side->is_other ? terms->minus.other : terms->minus.one].name;
  (void)snprintf(ret, CV_LAB_DERIVED_NAME, "%.*s%s%s", n > 0 ? (int)n : 3, n > 0 ? first : "all",
                 terms->has_minus ? " minus " : "", terms->has_minus ? minus : "");
}

enum cv_err cv_lab_derive(const struct cv_lab_dataset *dataset, const struct cv_lab_terms *terms,
                          struct cv_lab_derived *ret) {
  /* Without an average each point stays; with one, all become the first, except for the points of a trend. */
  size_t step = terms->average && terms->relation != CV_LAB_TREND ? terms->points : 1;
  *ret = (struct cv_lab_derived){.terms = *terms};
  CV_TRY(cv_lab_dataset_init(dataset->experiment, dataset->replicates, &ret->dataset));
  for (size_t i = 0; i < terms->points; i += step) {
    struct side side = {.dataset = dataset, .terms = terms, .from = i, .end = i + step};
    put(&side, &ret->dataset);
    name_side(&side, ret->one);
    side.is_other = true;
    put(&side, &ret->dataset);
    name_side(&side, ret->other);
  }
  ret->comparisons = terms->average ? terms->pairs * step : 0;
  ret->terms.pairs = 1;
  ret->terms.points = terms->points / step;
  return CV_OK;
}

void cv_lab_derived_fini(struct cv_lab_derived *derived) {
  cv_lab_dataset_fini(&derived->dataset);
}
