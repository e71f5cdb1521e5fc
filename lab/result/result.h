/* SPDX-License-Identifier: Apache-2.0 */
/* Summarised results: rows of (series, x, metric) with a mean over the replicates, and their printed forms. */
#ifndef CV_LAB_RESULT_H
#define CV_LAB_RESULT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"

enum { CV_LAB_NAME = 48 };

struct cv_lab_row {
  char series[CV_LAB_NAME];
  double x; /* NAN: none */
  char metric[CV_LAB_NAME];
  double mean, se;    /* se is NAN if there is none, as for a formula */
  double low, high;   /* of the error bar; none if NAN or equal to the mean */
  uint64_t n;         /* replicates; 0 for a formula */
  bool is_asymptotic; /* of a formula that holds in the limit only */
};

/* The name of a series for people: "NAME (asymptotic)", unless the name says so itself. */
struct cv_lab_caption {
  char text[CV_LAB_NAME + 16];
};
struct cv_lab_caption cv_lab_caption_of(const char *series, bool is_asymptotic);

struct cv_lab_result {
  const char *preset;
  struct cv_lab_row *row;
  size_t rows, cap;
};

void cv_lab_result_fini(struct cv_lab_result *result);
/* Adds a copy of the row. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_lab_result_add(struct cv_lab_result *result, const struct cv_lab_row *row);

/* Prints one JSON object per line: preset, series, x, metric, mean, se, n. CV_ERR_IO if writing fails. */
CV_MUST_USE enum cv_err cv_lab_print_json(const struct cv_lab_result *result, FILE *to);
/* Prints one table per metric for people: a column per series and a line per x, or vice versa if there are more series
 * than points; in the order in which rows were added. Of more than CV_LAB_LINES_MOST points it prints every tenth, the
 * last included, and how many it leaves out, unless `has_all`. CV_ERR_IO if writing fails. */
enum { CV_LAB_LINES_MOST = 30 };
CV_MUST_USE enum cv_err cv_lab_print_table(const struct cv_lab_result *result, const char *x_name, bool has_all,
                                           FILE *to);

#endif
