/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/result.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN = 12 };

void cv_lab_result_fini(struct cv_lab_result *result) {
  free(result->row);
  *result = (struct cv_lab_result){0};
}

enum cv_err cv_lab_result_add(struct cv_lab_result *result, const struct cv_lab_row *row) {
  if (result->rows == result->cap) {
    size_t cap = result->cap == 0 ? 64 : result->cap * 2;
    struct cv_lab_row *grown = realloc(result->row, cap * sizeof(*grown));
    if (grown == NULL) {
      return CV_ERR_NOMEM;
    }
    result->row = grown;
    result->cap = cap;
  }
  result->row[result->rows++] = *row;
  return CV_OK;
}

static json_t *number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

enum cv_err cv_lab_print_json(const struct cv_lab_result *result, FILE *to) {
  for (size_t i = 0; i < result->rows; i++) {
    const struct cv_lab_row *row = &result->row[i];
    json_t *object = json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:I}", "preset", result->preset, "series", row->series,
                               "x", number(row->x), "metric", row->metric, "mean", number(row->mean), "se",
                               number(row->se), "n", (json_int_t)row->n);
    bool ok = object != NULL && json_dumpf(object, to, JSON_COMPACT) == 0 && fputc('\n', to) != EOF;
    json_decref(object);
    if (!ok) {
      return CV_ERR_IO;
    }
  }
  return CV_OK;
}

/* Whether an earlier row of the metric has the same series, or the same x. */
static bool is_first_series(const struct cv_lab_result *result, size_t at) {
  for (size_t i = 0; i < at; i++) {
    if (strcmp(result->row[i].metric, result->row[at].metric) == 0 &&
        strcmp(result->row[i].series, result->row[at].series) == 0) {
      return false;
    }
  }
  return true;
}

static bool same_x(double a, double b) {
  return a == b || (isnan(a) && isnan(b));
}

static bool is_first_x(const struct cv_lab_result *result, size_t at) {
  for (size_t i = 0; i < at; i++) {
    if (strcmp(result->row[i].metric, result->row[at].metric) == 0 && same_x(result->row[i].x, result->row[at].x)) {
      return false;
    }
  }
  return true;
}

static bool is_first_metric(const struct cv_lab_result *result, size_t at) {
  for (size_t i = 0; i < at; i++) {
    if (strcmp(result->row[i].metric, result->row[at].metric) == 0) {
      return false;
    }
  }
  return true;
}

static const struct cv_lab_row *cell(const struct cv_lab_result *result, const struct cv_lab_row *line,
                                     const char *series) {
  for (size_t i = 0; i < result->rows; i++) {
    const struct cv_lab_row *row = &result->row[i];
    if (strcmp(row->metric, line->metric) == 0 && strcmp(row->series, series) == 0 && same_x(row->x, line->x)) {
      return row;
    }
  }
  return NULL;
}

static int width_of(const char *series) {
  size_t n = strlen(series);
  return n > COLUMN ? (int)n : COLUMN;
}

static void print_cell(const struct cv_lab_row *row, int width, FILE *to) {
  char text[64] = "-";
  if (row != NULL && isfinite(row->se)) {
    (void)snprintf(text, sizeof(text), "%.4g(%.1g)", row->mean, row->se);
  } else if (row != NULL) {
    (void)snprintf(text, sizeof(text), "%.4g", row->mean);
  }
  (void)fprintf(to, " %*s", width, text);
}

static void print_metric(const struct cv_lab_result *result, const char *metric, const char *x_name, FILE *to) {
  (void)fprintf(to, "%s\n%*s", metric, COLUMN, x_name);
  for (size_t i = 0; i < result->rows; i++) {
    if (strcmp(result->row[i].metric, metric) == 0 && is_first_series(result, i)) {
      (void)fprintf(to, " %*s", width_of(result->row[i].series), result->row[i].series);
    }
  }
  (void)fputc('\n', to);
  for (size_t line = 0; line < result->rows; line++) {
    if (strcmp(result->row[line].metric, metric) != 0 || !is_first_x(result, line)) {
      continue;
    }
    (void)fprintf(to, "%*.6g", COLUMN, result->row[line].x);
    for (size_t i = 0; i < result->rows; i++) {
      if (strcmp(result->row[i].metric, metric) == 0 && is_first_series(result, i)) {
        print_cell(cell(result, &result->row[line], result->row[i].series), width_of(result->row[i].series), to);
      }
    }
    (void)fputc('\n', to);
  }
}

enum cv_err cv_lab_print_table(const struct cv_lab_result *result, const char *x_name, FILE *to) {
  for (size_t i = 0; i < result->rows; i++) {
    if (is_first_metric(result, i)) {
      (void)fputs(i == 0 ? "" : "\n", to);
      print_metric(result, result->row[i].metric, x_name, to);
    }
  }
  return ferror(to) != 0 ? CV_ERR_IO : CV_OK;
}
