/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/figure.h"

#include <math.h>
#include <string.h>

#include "lab/gnuplot.h"

/* From so many points on, a series is a line in a band. */
enum { SERIES_MAX = 64, MANY = 24, TICS_MOST = 12 };

struct drawing {
  const struct cv_lab_figure *figure;
  const struct cv_lab_result *result;
  struct cv_lab_slug name; /* of the files */
  struct one {
    const char *name;
    size_t points, look;
    bool has_errors, has_theory, is_theory;
  } one[SERIES_MAX];
  size_t count, looks;
  bool has_x;
  double last_x, least; /* least: the smallest number above 0 */
};

static bool is_drawn(const struct drawing *drawing, const struct cv_lab_row *row) {
  return strcmp(row->metric, drawing->figure->metric) == 0 && isfinite(row->mean);
}

static struct one *find(struct drawing *drawing, const char *name, size_t n) {
  for (size_t i = 0; i < drawing->count; i++) {
    if (strlen(drawing->one[i].name) == n && strncmp(drawing->one[i].name, name, n) == 0) {
      return &drawing->one[i];
    }
  }
  return NULL;
}

/* Of "X, theory" the length of X, else 0. */
static size_t theory_of(const char *name) {
  static const char ending[] = ", theory";
  size_t n = strlen(name), m = sizeof(ending) - 1;
  return n > m && strcmp(name + n - m, ending) == 0 ? n - m : 0;
}

static void collect_row(struct drawing *drawing, const struct cv_lab_row *row) {
  struct one *one = find(drawing, row->series, strlen(row->series));
  if (one == NULL && drawing->count < SERIES_MAX) {
    one = &drawing->one[drawing->count++];
    *one = (struct one){.name = row->series};
  }
  if (one != NULL) {
    one->points++;
    one->has_errors = one->has_errors || isfinite(row->se);
    drawing->least = row->mean > 0 ? fmin(drawing->least, row->mean) : drawing->least;
    drawing->has_x = drawing->has_x || isfinite(row->x);
    drawing->last_x = isfinite(row->x) ? fmax(drawing->last_x, row->x) : drawing->last_x;
  }
}

static void collect(struct drawing *drawing) {
  drawing->least = (double)INFINITY;
  for (size_t i = 0; i < drawing->result->rows; i++) {
    if (is_drawn(drawing, &drawing->result->row[i])) {
      collect_row(drawing, &drawing->result->row[i]);
    }
  }
  for (size_t i = 0; i < drawing->count; i++) {
    struct one *one = &drawing->one[i];
    size_t n = theory_of(one->name);
    struct one *subject = n == 0 ? NULL : find(drawing, one->name, n);
    one->look = subject != NULL ? subject->look : drawing->looks++;
    one->is_theory = subject != NULL;
    if (subject != NULL) {
      subject->has_theory = true;
    }
  }
}

/* Where the axis has no place for 0 and below, an error bar ends a decade below all that is drawn. */
static double end_of_bar(const struct drawing *drawing, double end, double mean) {
  if (!isfinite(end)) {
    return mean;
  }
  return drawing->figure->log_y && end <= 0 ? drawing->least / 10 : end;
}

/* One block a series, in gnuplot's way: two blank lines between. */
static enum cv_err write_data(const struct drawing *drawing, const char *folder, struct cv_why *why) {
  FILE *file = cv_lab_file_create(folder, drawing->name.text, "dat", why);
  if (file == NULL) {
    return CV_ERR_IO;
  }
  (void)fprintf(file, "# %s: x mean low high se n\n", drawing->figure->metric);
  for (size_t at = 0; at < drawing->count; at++) {
    (void)fprintf(file, "%s# %s\n", at == 0 ? "" : "\n\n", drawing->one[at].name);
    for (size_t i = 0; i < drawing->result->rows; i++) {
      const struct cv_lab_row *row = &drawing->result->row[i];
      if (is_drawn(drawing, row) && strcmp(row->series, drawing->one[at].name) == 0) {
        double x = isfinite(row->x) ? row->x : (double)at + 1;
        (void)fprintf(file, "%.10g %.10g %.10g %.10g %.10g %llu\n", x, row->mean,
                      end_of_bar(drawing, row->low, row->mean), end_of_bar(drawing, row->high, row->mean),
                      isfinite(row->se) ? row->se : 0.0, (unsigned long long)row->n);
      }
    }
  }
  return cv_lab_file_finish(file, folder, why);
}

static void write_source(const struct drawing *drawing, size_t at, FILE *to) {
  (void)fprintf(to, "'%s.dat' index %zu ", drawing->name.text, at);
}

/* Error bars, or of many points a band. */
static void write_errors(const struct drawing *drawing, size_t at, bool is_band, FILE *to) {
  const char *colour = cv_lab_look_of(drawing->one[at].look).colour;
  write_source(drawing, at, to);
  if (is_band) {
    (void)fprintf(to, "using 1:3:4 with filledcurves lc rgb '%s' fs transparent solid 0.15 noborder", colour);
  } else {
    (void)fprintf(to, "using 1:2:3:4 with yerrorbars pt 0 lw 1 lc rgb '%s'", colour);
  }
  (void)fputs(" notitle, \\\n  ", to);
}

static void write_line(const struct drawing *drawing, const struct one *one, bool is_band, FILE *to) {
  struct cv_lab_look look = cv_lab_look_of(one->look);
  if (!one->has_errors) {
    (void)fprintf(to, "using 1:2 with lines lw %s dt %d", one->is_theory ? "1" : "2", look.dashes);
  } else if (one->has_theory || !drawing->has_x) {
    (void)fprintf(to, "using 1:2 with points ps 0.8 pt %d", look.shape);
  } else {
    size_t step = is_band ? 1 + one->points / 9 : 1; /* as many shapes as are told apart */
    (void)fprintf(to, "using 1:2 with linespoints pi -%zu ps 0.9 lw 1.5 dt %d pt %d", step, look.dashes, look.shape);
  }
  (void)fprintf(to, " lc rgb '%s' ", look.colour);
}

static void write_series(const struct drawing *drawing, size_t at, FILE *to) {
  const struct one *one = &drawing->one[at];
  bool is_band = one->points > MANY && !one->has_theory;
  if (one->has_errors) {
    write_errors(drawing, at, is_band, to);
  }
  write_source(drawing, at, to);
  write_line(drawing, one, is_band, to);
  if (one->is_theory) {
    (void)fputs("notitle", to);
  } else {
    (void)fputs("title ", to);
    cv_lab_gnuplot_quote(one->name, to);
  }
}

static void write_plot(const void *data, FILE *to) {
  const struct drawing *drawing = data;
  (void)fputs("plot \\\n  ", to);
  for (size_t at = 0; at < drawing->count; at++) {
    (void)fputs(at == 0 ? "" : ", \\\n  ", to);
    write_series(drawing, at, to);
  }
  (void)fputs("\n", to);
}

/* Without an x, each series has a place of its own and its name there. */
static void write_names(const struct drawing *drawing, FILE *to) {
  (void)fprintf(to, "set xrange [0.5:%zu.5]\nset xtics rotate by -30 left noenhanced (", drawing->count);
  for (size_t at = 0; at < drawing->count; at++) {
    (void)fputs(at == 0 ? "" : ", ", to);
    cv_lab_gnuplot_quote(drawing->one[at].name, to);
    (void)fprintf(to, " %zu", at + 1);
  }
  (void)fputs(")\nunset key\n", to);
}

/* The x of the first series, if they are few enough to be named each. */
static void write_tics(const struct drawing *drawing, FILE *to) {
  const char *separator = "set xtics (";
  if (drawing->one[0].points > TICS_MOST) {
    return;
  }
  for (size_t i = 0; i < drawing->result->rows; i++) {
    const struct cv_lab_row *row = &drawing->result->row[i];
    if (is_drawn(drawing, row) && strcmp(row->series, drawing->one[0].name) == 0) {
      (void)fprintf(to, "%s%.10g", separator, row->x);
      separator = ", ";
    }
  }
  (void)fputs(")\n", to);
}

static bool is_power_of_two(double x) {
  int exponent;
  return x >= 16 && frexp(x, &exponent) == .5;
}

static enum cv_err write_script(const struct drawing *drawing, const char *folder, struct cv_why *why) {
  const struct cv_lab_figure *figure = drawing->figure;
  FILE *file = cv_lab_file_create(folder, drawing->name.text, "gp", why);
  if (file == NULL) {
    return CV_ERR_IO;
  }
  cv_lab_gnuplot_begin(figure->title, drawing->has_x ? figure->x_label : NULL, figure->y_label, file);
  if (figure->log_x && drawing->has_x) {
    (void)fprintf(file, "set logscale x %d\n", is_power_of_two(drawing->last_x) ? 2 : 10);
  } else if (drawing->has_x) {
    bool has_tics = drawing->one[0].points <= TICS_MOST;
    (void)fputs(has_tics ? "set offsets graph 0.02, graph 0.02, 0, 0\n" : "set autoscale xfix\n", file);
  }
  (void)fputs(figure->log_y ? "set logscale y\n" : "", file);
  if (drawing->has_x) {
    write_tics(drawing, file);
  } else {
    write_names(drawing, file);
  }
  cv_lab_gnuplot_twice(drawing->name.text, drawing->looks, write_plot, drawing, file);
  return cv_lab_file_finish(file, folder, why);
}

enum cv_err cv_lab_figure_draw(const struct cv_lab_figure *figure, const struct cv_lab_result *result,
                               const char *folder, struct cv_why *why) {
  struct drawing drawing = {.figure = figure, .result = result, .name = cv_lab_slug(figure->name, "")};
  CV_TRY(cv_lab_folder_make(folder, why));
  collect(&drawing);
  if (drawing.count == 0) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: no number of %s is there to be drawn", figure->name, figure->metric);
  }
  CV_TRY(write_data(&drawing, folder, why));
  CV_TRY(write_script(&drawing, folder, why));
  return cv_lab_gnuplot_run(folder, drawing.name.text, why);
}
