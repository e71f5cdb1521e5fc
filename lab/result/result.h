/* SPDX-License-Identifier: Apache-2.0 */
/* What an experiment finds: rows of (series, x, metric) with a mean over replicates, and how they are shown. */
#ifndef CV_LAB_RESULT_H
#define CV_LAB_RESULT_H

#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"

enum { CV_LAB_NAME = 48 };

struct cv_lab_row {
  char series[CV_LAB_NAME];
  double x; /* NAN: none */
  char metric[CV_LAB_NAME];
  double mean, se;  /* se is NAN where there is none, as of a formula */
  double low, high; /* of the error bar; NAN or equal to the mean: none */
  uint64_t n;       /* replicates; 0 of a formula */
};

struct cv_lab_result {
  const char *preset;
  struct cv_lab_row *row;
  size_t rows, cap;
};

void cv_lab_result_fini(struct cv_lab_result *result);
/* Copies the row. */
CV_MUST_USE enum cv_err cv_lab_result_add(struct cv_lab_result *result, const struct cv_lab_row *row);

/* One object a line: preset, series, x, metric, mean, se, n. CV_ERR_IO if the file does not take it. */
CV_MUST_USE enum cv_err cv_lab_print_json(const struct cv_lab_result *result, FILE *to);
/* For a person: a grid for each metric, series across and x down the page, or the other way around where there are more
 * series than points; all in the order in which they were added. CV_ERR_IO if the file does not take it. */
CV_MUST_USE enum cv_err cv_lab_print_table(const struct cv_lab_result *result, const char *x_name, FILE *to);

#endif
