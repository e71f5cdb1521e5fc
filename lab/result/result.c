/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/result/result.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/text.h"
#include "common/base/width.h"
#include "common/config/escape.h"

enum { COLUMN = 12, STEP = 10 };

struct cv_lab_caption cv_lab_caption_of(const char *series, bool is_asymptotic) {
  struct cv_lab_caption label;
  bool says_so = strstr(series, "asymptotic") != NULL;
  (void)snprintf(label.text, sizeof(label.text), "%s%s", series, is_asymptotic && !says_so ? " (asymptotic)" : "");
  return label;
}

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
    bool ok =
        object != NULL && json_dump_callback(object, cv_escape_json, to, JSON_COMPACT) == 0 && fputc('\n', to) != EOF;
    json_decref(object);
    if (!ok) {
      return ferror(to) != 0 ? CV_ERR_IO : CV_ERR_NOMEM;
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

static struct cv_lab_caption head_of(const struct cv_lab_row *row, bool is_series) {
  struct cv_lab_caption head = {""};
  if (is_series) {
    return cv_lab_caption_of(row->series, row->is_asymptotic);
  }
  if (isfinite(row->x)) {
    (void)snprintf(head.text, sizeof(head.text), "%.6g", row->x);
  }
  return head;
}

static struct cv_lab_caption cell_of(const struct cv_lab_result *result, const struct cv_lab_row *x,
                                     const struct cv_lab_row *series) {
  struct cv_lab_caption cell = {"-"};
  const struct cv_lab_row *row = result->row;
  while (row < result->row + result->rows && !(same_metric(row, x) && same_x(row, x) && same_series(row, series))) {
    row++;
  }
  if (row < result->row + result->rows && isfinite(row->se)) {
    (void)snprintf(cell.text, sizeof(cell.text), "%.4g ± %.2g", row->mean, row->se);
  } else if (row < result->row + result->rows) {
    (void)snprintf(cell.text, sizeof(cell.text), "%.4g", row->mean);
  }
  return cell;
}

static int wider(int width, const char *text) {
  int n = (int)cv_width_of(text);
  return n > width ? n : width;
}

/* Prints the text in so many columns, at their right; at their left if `width` is negative. */
static void put(const char *text, int width, FILE *to) {
  int fill = abs(width) - (int)cv_width_of(text);
  (void)fprintf(to, "%*s%s%*s", width > 0 && fill > 0 ? fill : 0, "", text, width < 0 && fill > 0 ? fill : 0, "");
}

/* Prints a table. The larger number, of series or of points, goes down the page, since a page is longer than wide.
 * Returns the number of lines left out. */
static size_t print_grid(const struct cv_lab_result *result, const struct heads *points, const struct heads *series,
                         const char *x_name, bool has_all, FILE *to) {
  bool down = series->count > points->count;
  const struct heads *lines = down ? series : points, *columns = down ? points : series;
  size_t step = down || has_all || lines->count <= CV_LAB_LINES_MOST ? 1 : STEP, printed = 0;
  int first = down ? 0 : wider(COLUMN, x_name);
  for (size_t i = 0; i < lines->count; i++) {
    first = wider(first, head_of(lines->row[i], down).text);
  }
  (void)fprintf(to, "%s%s%s\n", points->row[0]->metric, down && x_name[0] != '\0' ? ", across: " : "",
                down ? x_name : "");
  put(down ? "" : x_name, first, to);
  for (size_t j = 0; j < columns->count; j++) {
    struct cv_lab_caption head = head_of(columns->row[j], !down);
    put(head.text, 2 + wider(COLUMN, head.text), to);
  }
  (void)fputc('\n', to);
  /* Starts such that the last line, the end of a run, is among those printed. */
  for (size_t i = (lines->count - 1) % step; i < lines->count; i += step, printed++) {
    put(head_of(lines->row[i], down).text, down ? -first : first, to);
    for (size_t j = 0; j < columns->count; j++) {
      const struct cv_lab_row *at = down ? columns->row[j] : lines->row[i];
      const struct cv_lab_row *of = down ? lines->row[i] : columns->row[j];
      put(cell_of(result, at, of).text, 2 + wider(COLUMN, head_of(columns->row[j], !down).text), to);
    }
    (void)fputc('\n', to);
  }
  return lines->count - printed;
}

enum cv_err cv_lab_print_table(const struct cv_lab_result *result, const char *x_name, bool has_all, FILE *to) {
  struct heads points = {0}, series = {0};
  size_t hidden = 0;
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
      hidden += print_grid(result, &points, &series, x_name, has_all, to);
    }
    free(points.row);
    free(series.row);
    points = series = (struct heads){0};
  }
  if (hidden > 0) {
    (void)fprintf(to, "%zu rows are left out, nine of ten; --all prints them\n", hidden);
  }
  return err == CV_OK && ferror(to) != 0 ? CV_ERR_IO : err;
}
