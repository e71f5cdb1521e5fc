/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/result/result.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

enum { COLUMN = 12 };

void cv_lab_result_fini(struct cv_lab_result *result) {
  free(result->row);
  *result = (struct cv_lab_result){0};
}

enum cv_err cv_lab_result_add(struct cv_lab_result *result, const struct cv_lab_row *row) {
  CV_TRY(CV_ARRAY_ROOM(result->row, result->rows + 1, result->cap));
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

/* ---- the table ---- */

static bool same_x(const struct cv_lab_row *a, const struct cv_lab_row *b) {
  return a->x == b->x || (isnan(a->x) && isnan(b->x));
}

static bool same_series(const struct cv_lab_row *a, const struct cv_lab_row *b) {
  return strcmp(a->series, b->series) == 0;
}

static bool same_metric(const struct cv_lab_row *a, const struct cv_lab_row *b) {
  return strcmp(a->metric, b->metric) == 0;
}

typedef bool same_fn(const struct cv_lab_row *a, const struct cv_lab_row *b);

/* The first row of each series, or of each x, of a metric: the headings of a table. */
struct heads {
  size_t count;
  const struct cv_lab_row **row;
};

static enum cv_err find_heads(const struct cv_lab_result *result, const struct cv_lab_row *metric, same_fn *same,
                              struct heads *ret) {
  struct heads heads = {.row = calloc(result->rows, sizeof(const struct cv_lab_row *))};
  if (heads.row == NULL) {
    return CV_ERR_NOMEM;
  }
  for (const struct cv_lab_row *row = metric; row < result->row + result->rows; row++) {
    size_t i = 0;
    while (i < heads.count && !same(heads.row[i], row)) {
      i++;
    }
    if (i == heads.count && same_metric(metric, row)) {
      heads.row[heads.count++] = row;
    }
  }
  *ret = heads;
  return CV_OK;
}

struct cell {
  char text[CV_LAB_NAME];
};

static struct cell head_of(const struct cv_lab_row *row, bool is_series) {
  struct cell cell = {""};
  if (is_series) {
    (void)snprintf(cell.text, sizeof(cell.text), "%s", row->series);
  } else if (isfinite(row->x)) {
    (void)snprintf(cell.text, sizeof(cell.text), "%.6g", row->x);
  }
  return cell;
}

static struct cell cell_of(const struct cv_lab_result *result, const struct cv_lab_row *x,
                           const struct cv_lab_row *series) {
  struct cell cell = {"-"};
  const struct cv_lab_row *row = result->row;
  while (row < result->row + result->rows && !(same_metric(row, x) && same_x(row, x) && same_series(row, series))) {
    row++;
  }
  if (row < result->row + result->rows && isfinite(row->se)) {
    (void)snprintf(cell.text, sizeof(cell.text), "%.4g(%.1g)", row->mean, row->se);
  } else if (row < result->row + result->rows) {
    (void)snprintf(cell.text, sizeof(cell.text), "%.4g", row->mean);
  }
  return cell;
}

static int wider(int width, const char *text) {
  int n = (int)strlen(text);
  return n > width ? n : width;
}

/* Prints a table. The larger number, of series or of points, goes down the page, since a page is longer than wide. */
static void print_grid(const struct cv_lab_result *result, const struct heads *points, const struct heads *series,
                       const char *x_name, FILE *to) {
  bool down = series->count > points->count;
  const struct heads *lines = down ? series : points, *columns = down ? points : series;
  int first = down ? 0 : wider(COLUMN, x_name);
  for (size_t i = 0; i < lines->count; i++) {
    first = wider(first, head_of(lines->row[i], down).text);
  }
  (void)fprintf(to, "%s%s%s\n%*s", points->row[0]->metric, down && x_name[0] != '\0' ? ", across: " : "",
                down ? x_name : "", first, down ? "" : x_name);
  for (size_t j = 0; j < columns->count; j++) {
    struct cell head = head_of(columns->row[j], !down);
    (void)fprintf(to, "  %*s", wider(COLUMN, head.text), head.text);
  }
  (void)fputc('\n', to);
  for (size_t i = 0; i < lines->count; i++) {
    (void)fprintf(to, "%*s", down ? -first : first, head_of(lines->row[i], down).text);
    for (size_t j = 0; j < columns->count; j++) {
      const struct cv_lab_row *at = down ? columns->row[j] : lines->row[i];
      const struct cv_lab_row *of = down ? lines->row[i] : columns->row[j];
      (void)fprintf(to, "  %*s", wider(COLUMN, head_of(columns->row[j], !down).text), cell_of(result, at, of).text);
    }
    (void)fputc('\n', to);
  }
}

enum cv_err cv_lab_print_table(const struct cv_lab_result *result, const char *x_name, FILE *to) {
  struct heads points = {0}, series = {0};
  enum cv_err err = CV_OK;
  for (size_t i = 0; i < result->rows && err == CV_OK; i++) {
    const struct cv_lab_row *row = &result->row[i];
    size_t earlier = 0;
    /* One table per metric, printed at the metric's first row. */
    while (!same_metric(&result->row[earlier], row)) {
      earlier++;
    }
    if (earlier < i) {
      continue;
    }
    (void)fputs(i == 0 ? "" : "\n", to);
    err = find_heads(result, row, same_x, &points);
    if (err == CV_OK) {
      err = find_heads(result, row, same_series, &series);
    }
    if (err == CV_OK) {
      print_grid(result, &points, &series, x_name, to);
    }
    free(points.row);
    free(series.row);
    points = series = (struct heads){0};
  }
  return err == CV_OK && ferror(to) != 0 ? CV_ERR_IO : err;
}
