/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/report/distribution.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/judge/summary.h"
#include "lab/report/gnuplot.h"

/* Up to GROUPS_MOST points of x are drawn if they have at most BOXES_MOST boxes in all, else the last point alone.
 * About STRIP_MOST replicates are shown in all, but at least STRIP_LEAST per box. UPRIGHT: more names than this are
 * rotated. */
enum { GROUPS_MOST = 8, BOXES_MOST = 48, STRIP_MOST = 1500, STRIP_LEAST = 20, UPRIGHT = 14 };

struct scatter {
  const struct cv_lab_dataset *dataset;
  struct cv_lab_slug name;
  size_t series[CV_LAB_SERIES_MAX], count; /* those that are run, not computed */
  size_t first, points;
  double *value; /* scratch: the replicates of a box */
  bool is_above_zero;
};

static bool is_shown(const struct scatter *scatter, size_t series) {
  const struct cv_lab_dataset *dataset = scatter->dataset;
  for (size_t point = scatter->first; point < scatter->first + scatter->points; point++) {
    for (uint64_t i = 0; i < dataset->replicates; i++) {
      if (!isnan(cv_lab_value(dataset, i, series, point, 0))) {
        return true;
      }
    }
  }
  return false;
}

static void choose(struct scatter *scatter) {
  const struct cv_lab_experiment *experiment = scatter->dataset->experiment;
  bool has_all = experiment->axis == CV_LAB_AXIS_PARAMETER && experiment->points <= GROUPS_MOST &&
                 experiment->points * experiment->series <= BOXES_MOST;
  scatter->points = has_all ? experiment->points : 1;
  scatter->first = has_all ? 0 : experiment->points - 1;
  for (size_t i = 0; i < experiment->series; i++) {
    if (experiment->one[i].formula == NULL && is_shown(scatter, i)) {
      scatter->series[scatter->count++] = i;
    }
  }
}

/* Collects the values of a box in ascending order; returns their number. */
static size_t gather(const struct scatter *scatter, size_t series, size_t point) {
  size_t n = 0;
  for (uint64_t i = 0; i < scatter->dataset->replicates; i++) {
    double value = cv_lab_value(scatter->dataset, i, series, point, 0);
    if (isfinite(value)) {
      scatter->value[n++] = value;
    }
  }
  cv_lab_sort(scatter->value, n);
  return n;
}

/* The horizontal place of a box; groups are one box apart. */
static size_t place_of(const struct scatter *scatter, size_t series, size_t point) {
  return (point - scatter->first) * (scatter->count + 1) + series;
}

static void write_box(struct scatter *scatter, size_t at, size_t point, FILE *file) {
  size_t series = scatter->series[at], n = gather(scatter, series, point);
  const double *value = scatter->value;
  if (n == 0) {
    return;
  }
  (void)fprintf(file, "%zu", place_of(scatter, at, point));
  static const double parts[] = {.05, .25, .5, .75, .95};
  for (size_t i = 0; i < CV_COUNT(parts); i++) {
    (void)fprintf(file, " %.10g", cv_lab_quantile(value, n, parts[i]));
  }
  (void)fprintf(file, " %.10g %zu\n", cv_lab_summarise(scatter->dataset, series, point, 0).mean, n);
  scatter->is_above_zero = scatter->is_above_zero && value[0] > 0;
}

/* Spreads ascending values across the box in steps of the golden ratio, so that similar values do not overlap. */
static void write_strip(const struct scatter *scatter, size_t at, size_t point, FILE *file) {
  size_t n = gather(scatter, scatter->series[at], point), most = STRIP_MOST / (scatter->count * scatter->points);
  size_t step = 1 + n / (most < STRIP_LEAST ? STRIP_LEAST : most);
  for (size_t i = step / 2; i < n; i += step) {
    size_t turn = i / step;
    double aside = fmod((double)turn * 0.6180339887498949, 1) - .5;
    (void)fprintf(file, "%.4f %.10g\n", (double)place_of(scatter, at, point) + .5 * aside, scatter->value[i]);
  }
}

/* Writes two blocks per series: its boxes, then its replicates. */
static enum cv_err write_data(struct scatter *scatter, const char *folder, struct cv_why *why) {
  FILE *file = cv_lab_file_create(folder, scatter->name.text, "dat", why);
  if (file == NULL) {
    return CV_ERR_IO;
  }
  scatter->is_above_zero = true;
  for (size_t at = 0; at < scatter->count; at++) {
    (void)fprintf(file, "%s# %s: place 5%% 25%% 50%% 75%% 95%% mean n\n", at == 0 ? "" : "\n\n",
                  scatter->dataset->experiment->one[scatter->series[at]].name);
    for (size_t point = scatter->first; point < scatter->first + scatter->points; point++) {
      write_box(scatter, at, point, file);
    }
    (void)fputs("\n\n# place value\n", file);
    for (size_t point = scatter->first; point < scatter->first + scatter->points; point++) {
      write_strip(scatter, at, point, file);
    }
  }
  return cv_lab_file_finish(file, folder, why);
}

static void write_series(const struct scatter *scatter, size_t at, FILE *to) {
  struct cv_lab_look look = cv_lab_look_of(scatter->series[at]);
  (void)fprintf(to, "'%s.dat' index %zu with points pt 7 ps 0.35 lc rgb '#80%s' notitle, \\\n  ", scatter->name.text,
                2 * at + 1, look.colour + 1);
  (void)fprintf(to,
                "'' index %zu using 1:3:2:6:5:(0.7) with candlesticks lw 1.2 lc rgb '%s' fs transparent solid 0.2 "
                "border notitle whiskerbars 0.5, \\\n  ",
                2 * at, look.colour);
  (void)fprintf(to, "'' index %zu using ($1-0.35):4:(0.7):(0) with vectors nohead lw 2.5 lc rgb '%s' notitle, \\\n  ",
                2 * at, look.colour);
  (void)fprintf(to, "'' index %zu using 1:7 with points pt %d ps 1.1 lc rgb '%s' title ", 2 * at, look.shape,
                look.colour);
  cv_lab_gnuplot_quote(scatter->dataset->experiment->one[scatter->series[at]].name, to);
}

static void write_plot(const void *data, FILE *to) {
  const struct scatter *scatter = data;
  (void)fputs("plot \\\n  ", to);
  for (size_t at = 0; at < scatter->count; at++) {
    (void)fputs(at == 0 ? "" : ", \\\n  ", to);
    write_series(scatter, at, to);
  }
  (void)fputs("\n", to);
}

/* Writes the names on the axis: the x of each group, or with a single group the series of each box. */
static void write_tics(const struct scatter *scatter, FILE *to) {
  const struct cv_lab_experiment *experiment = scatter->dataset->experiment;
  (void)fprintf(to, "set xrange [-1:%zu]\nset xtics scale 0 noenhanced (", scatter->points * (scatter->count + 1) - 1);
  for (size_t i = 0; scatter->points > 1 && i < scatter->points; i++) {
    (void)fprintf(to, "%s'%.10g' %.1f", i == 0 ? "" : ", ", experiment->x[i],
                  (double)(i * (scatter->count + 1)) + (double)(scatter->count - 1) / 2);
  }
  for (size_t i = 0; scatter->points == 1 && i < scatter->count; i++) {
    (void)fputs(i == 0 ? "" : ", ", to);
    cv_lab_gnuplot_quote_tic(experiment->one[scatter->series[i]].name, to);
    (void)fprintf(to, " %zu", i);
  }
  (void)fprintf(to, ")\nset grid noxtics\n%s", scatter->points > 1 ? "" : "unset key\n");
  if (scatter->points == 1) { /* many names fit only upright */
    (void)fprintf(to, "set xtics rotate by %d left font ',%d'\nset rmargin %d\n", scatter->count > UPRIGHT ? -90 : -30,
                  scatter->count > UPRIGHT ? 8 : 13, scatter->count > UPRIGHT ? 2 : 12);
  }
}

/* With names on the axis there is no legend, but upright names need space. */
static size_t height_of(const struct scatter *scatter) {
  return cv_lab_gnuplot_height(scatter->points > 1 ? scatter->count : scatter->count > UPRIGHT ? 32 : 6);
}

static enum cv_err write_script(const struct scatter *scatter, const char *folder, struct cv_why *why) {
  const struct cv_lab_experiment *experiment = scatter->dataset->experiment;
  char title[160], about[200];
  FILE *file = cv_lab_file_create(folder, scatter->name.text, "gp", why);
  if (file == NULL) {
    return CV_ERR_IO;
  }
  if (experiment->axis == CV_LAB_AXIS_NONE || scatter->points > 1) {
    (void)snprintf(title, sizeof(title), "Distribution over %llu replicates",
                   (unsigned long long)scatter->dataset->replicates);
  } else {
    (void)snprintf(title, sizeof(title), "Distribution over %llu replicates at %.60s = %.10g",
                   (unsigned long long)scatter->dataset->replicates, experiment->figure.x_label,
                   experiment->x[scatter->first]);
  }
  (void)snprintf(about, sizeof(about),
                 "boxes: quartiles and median; whiskers: 5 to 95 %%; marks: %s; dots: single replicates",
                 cv_lab_statistics[experiment->statistic]);
  cv_lab_gnuplot_begin(title, about, scatter->points > 1 ? experiment->figure.x_label : NULL,
                       experiment->figure.y_label, file);
  write_tics(scatter, file);
  /* A mean may be above 0 where single replicates, as of a regret, are not: these have no place on a logarithmic
   * axis. */
  (void)fputs(experiment->figure.log_y && scatter->is_above_zero ? "set logscale y\n" : "", file);
  cv_lab_gnuplot_twice(scatter->name.text, height_of(scatter), write_plot, scatter, file);
  return cv_lab_file_finish(file, folder, why);
}

static enum cv_err draw(struct scatter *scatter, const char *folder, struct cv_why *why) {
  CV_TRY(cv_lab_folder_make(folder, why));
  CV_TRY(write_data(scatter, folder, why));
  CV_TRY(write_script(scatter, folder, why));
  return cv_lab_gnuplot_run(folder, scatter->name.text, why);
}

enum cv_err cv_lab_distribution_draw(const struct cv_lab_dataset *dataset, const char *folder, struct cv_why *why) {
  const struct cv_lab_figure *figure = &dataset->experiment->figure;
  struct scatter scatter = {.dataset = dataset, .name = cv_lab_slug(figure->name, "-distribution")};
  choose(&scatter);
  if (scatter.count == 0) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: there are no replicates of %s to draw", figure->name, figure->metric);
  }
  scatter.value = calloc(dataset->replicates, sizeof(*scatter.value));
  if (scatter.value == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  enum cv_err err = draw(&scatter, folder, why);
  free(scatter.value);
  return err;
}
