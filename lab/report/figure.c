/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series and cells are recognised by their names alone: "NAME, epsilon 0.1" is a cell of a grid, and "X, theory" a line
 * computed for series X. So a figure can be drawn from rows of results without the experiment.
 */
#include "lab/report/figure.h"

#include <math.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/width.h"
#include "lab/report/ends.h"
#include "lab/report/gnuplot.h"

/* MANY: a series with more points is drawn as a line in a band. TICS_MOST: up to this many x get a label each. */
enum { SERIES_MAX = 64, MANY = 24, TICS_MOST = 12 };
/* LOOKS_MOST: more styles cannot be distinguished, so the cells of a grid then get one panel each. */
enum { LOOKS_MOST = 12, CELLS_MAX = 16, PANEL_HEIGHT = 340, TITLE_HEIGHT = 75, LEGEND_HEIGHT = 18, LEGENDS_BESIDE = 3 };
/* Longer names have no room beside the plot. */
enum { END_COLUMNS_MOST = 32 };
/* A line of text beside a plot, as a share of the plot's height. */
static const double end_height = .042;

struct drawing {
  const struct cv_lab_figure *figure;
  const struct cv_lab_result *result;
  struct cv_lab_slug name; /* of the files */
  struct one {
    const char *name;
    size_t points, look;
    const char *cell; /* "epsilon 0.1" of "NAME, epsilon 0.1"; NULL: in all panels */
    bool has_errors, has_theory, is_theory, is_asymptotic;
    double end_x, end; /* its last point */
  } one[SERIES_MAX];
  size_t count, looks;
  bool has_x;
  double last_x, least; /* least: the smallest number above 0 */
  double low, high;     /* of all that is drawn */
  size_t cells;         /* panels; 0: one plot */
  const char *cell[CELLS_MAX];
  struct cv_lab_bars bars;
  struct cv_lab_end end[LOOKS_MOST]; /* names beside the lines' ends; none if there are no `ends` */
  size_t ends;
  bool has_legend;
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

/* The length of X in "X, theory"; 0 for other names. */
static size_t theory_of(const char *name) {
  static const char ending[] = ", theory";
  size_t n = strlen(name), m = sizeof(ending) - 1;
  return n > m && strcmp(name + n - m, ending) == 0 ? n - m : 0;
}

static void collect_row(struct drawing *drawing, const struct cv_lab_row *row) {
  struct one *one = find(drawing, row->series, strlen(row->series));
  if (one == NULL && drawing->count < SERIES_MAX) {
    one = &drawing->one[drawing->count++];
    *one = (struct one){.name = row->series, .is_asymptotic = row->is_asymptotic, .end_x = -(double)INFINITY};
  }
  if (one != NULL) {
    if (row->x >= one->end_x) {
      one->end_x = row->x;
      one->end = row->mean;
    }
    one->points++;
    one->has_errors = one->has_errors || isfinite(row->se);
    drawing->least = row->mean > 0 ? fmin(drawing->least, row->mean) : drawing->least;
    drawing->low = fmin(drawing->low, isfinite(row->low) ? row->low : row->mean);
    drawing->high = fmax(drawing->high, isfinite(row->high) ? row->high : row->mean);
    drawing->has_x = drawing->has_x || isfinite(row->x);
    drawing->last_x = isfinite(row->x) ? fmax(drawing->last_x, row->x) : drawing->last_x;
  }
}

static void collect(struct drawing *drawing) {
  drawing->least = drawing->low = (double)INFINITY;
  drawing->high = -(double)INFINITY;
  for (size_t i = 0; i < drawing->result->rows; i++) {
    if (is_drawn(drawing, &drawing->result->row[i])) {
      collect_row(drawing, &drawing->result->row[i]);
    }
  }
  for (size_t i = 0; i < drawing->count; i++) {
    struct one *one = &drawing->one[i];
    size_t n = theory_of(one->name);
    struct one *subject = n == 0 ? NULL : find(drawing, one->name, n);
    /* A computed line has the colour of its series, so that the eye pairs them, and needs no entry in the legend. */
    one->look = subject != NULL ? subject->look : drawing->looks++;
    one->is_theory = subject != NULL;
    if (subject != NULL) {
      subject->has_theory = true;
    }
  }
}

static const char *cell_of(const char *name) {
  const char *comma = strstr(name, ", ");
  return comma == NULL || theory_of(name) > 0 ? NULL : comma + 2;
}

static size_t find_cell(const struct drawing *drawing, const char *cell) {
  size_t at = 0;
  while (at < drawing->cells && strcmp(drawing->cell[at], cell) != 0) {
    at++;
  }
  return at;
}

/* The length of a series' name without the cell. */
static size_t base_of(const struct one *one) {
  return one->cell == NULL ? strlen(one->name) : (size_t)(one->cell - one->name) - 2;
}

/* Gives the same style to series that differ in their cell only. */
static void share_looks(struct drawing *drawing) {
  drawing->looks = 0;
  for (size_t i = 0; i < drawing->count; i++) {
    struct one *one = &drawing->one[i];
    size_t n = base_of(one), j = 0;
    while (j < i && (base_of(&drawing->one[j]) != n || strncmp(drawing->one[j].name, one->name, n) != 0)) {
      j++;
    }
    one->look = j < i ? drawing->one[j].look : drawing->looks++;
  }
}

/* Divides the figure into panels if a grid has made too many series for one plot. */
static void divide(struct drawing *drawing) {
  size_t members[CELLS_MAX] = {0};
  if (drawing->looks <= LOOKS_MOST || !drawing->has_x) {
    return;
  }
  for (size_t i = 0; i < drawing->count; i++) {
    const char *cell = cell_of(drawing->one[i].name);
    size_t at = cell == NULL ? 0 : find_cell(drawing, cell);
    if (cell != NULL && at == CELLS_MAX) {
      drawing->cells = 0; /* too many panels for a page: one crowded plot is the lesser evil */
      return;
    }
    if (cell != NULL) {
      drawing->cell[at] = cell;
      drawing->cells += at == drawing->cells;
      members[at]++;
    }
  }
  for (size_t i = 0; i < drawing->cells; i++) {
    if (members[i] < 2 || drawing->cells < 2) {
      drawing->cells = 0;
      return;
    }
  }
  for (size_t i = 0; drawing->cells > 0 && i < drawing->count; i++) {
    drawing->one[i].cell = cell_of(drawing->one[i].name);
  }
  if (drawing->cells > 0) {
    share_looks(drawing);
  }
}

/* The range of y that shows everything, with a little space. */
static void range_of(const struct drawing *drawing, double *low, double *high) {
  double spread = drawing->high - drawing->low, pad = spread > 0 ? .03 * spread : .1 * fabs(drawing->high) + .01;
  if (drawing->figure->log_y) {
    *low = fmin(drawing->least, drawing->low > 0 ? drawing->low : drawing->least) / 1.2;
    *high = drawing->high * 1.2;
    return;
  }
  /* Costs and shares start at 0 rather than a little below. */
  *low = drawing->low >= 0 && drawing->low < pad ? 0 : drawing->low - pad;
  *high = drawing->high + pad;
}

/* The height of a value in the plot, as a share. */
static double height_in(const struct drawing *drawing, double value) {
  double low, high;
  range_of(drawing, &low, &high);
  return drawing->figure->log_y ? log(fmax(value, low) / low) / log(high / low) : (value - low) / (high - low);
}

static size_t columns_of_name(const struct one *one) {
  return cv_width_of(cv_lab_caption_of(one->name, one->is_asymptotic).text);
}

/* Names the lines at their ends, where that tells more than a legend: several lines in one plot, with short names. */
static void place_ends(struct drawing *drawing) {
  drawing->has_legend = true;
  if (!drawing->has_x || drawing->cells > 0 || drawing->looks < 2 || drawing->looks > LOOKS_MOST) {
    return;
  }
  for (size_t i = 0; i < drawing->count; i++) {
    const struct one *one = &drawing->one[i];
    if (columns_of_name(one) > END_COLUMNS_MOST && !one->is_theory) {
      drawing->ends = 0;
      return;
    }
    if (!one->is_theory) {
      drawing->end[drawing->ends++] = (struct cv_lab_end){.series = i, .at = height_in(drawing, one->end)};
    }
  }
  drawing->has_legend = !cv_lab_ends_place(drawing->end, drawing->ends, end_height);
}

/* The end of an error bar. A logarithmic axis has no place for 0: there the bar ends a decade below all values. */
static double end_of_bar(const struct drawing *drawing, double end, double mean) {
  if (!isfinite(end)) {
    return mean;
  }
  return drawing->figure->log_y && end <= 0 ? drawing->least / 10 : end;
}

/* Writes one block per series; gnuplot separates blocks by two blank lines. */
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

/* Whether its errors are a band: bars of many points would cover each other. */
static bool is_in_band(const struct one *one) {
  return one->points > MANY && !one->has_theory;
}

static void write_source(const struct drawing *drawing, size_t at, FILE *to) {
  (void)fprintf(to, "'%s.dat' index %zu ", drawing->name.text, at);
}

/* Writes the plot element for errors: bars, or a band if there are many points. */
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
    size_t step = is_band ? 1 + one->points / 9 : 1; /* about nine shapes, which do not overlap */
    (void)fprintf(to, "using 1:2 with linespoints pi -%zu ps 0.9 lw 1.5 dt %d pt %d", step, look.dashes, look.shape);
  }
  (void)fprintf(to, " lc rgb '%s' ", look.colour);
}

static void write_series(const struct drawing *drawing, size_t at, FILE *to) {
  const struct one *one = &drawing->one[at];
  bool is_band = is_in_band(one);
  if (one->has_errors) {
    write_errors(drawing, at, is_band, to);
  }
  write_source(drawing, at, to);
  write_line(drawing, one, is_band, to);
  if (one->is_theory || drawing->cells > 0) {
    (void)fputs("notitle", to);
  } else {
    (void)fputs("title ", to);
    cv_lab_gnuplot_quote(cv_lab_caption_of(one->name, one->is_asymptotic).text, to);
  }
}

/* Writes the plot command of all series, or of those of a cell. */
static void write_one_plot(const struct drawing *drawing, const char *cell, FILE *to) {
  const char *separator = "plot \\\n  ";
  for (size_t at = 0; at < drawing->count; at++) {
    const char *own = drawing->one[at].cell;
    if (cell == NULL || own == NULL || strcmp(own, cell) == 0) {
      (void)fputs(separator, to);
      write_series(drawing, at, to);
      separator = ", \\\n  ";
    }
  }
  (void)fputs("\n", to);
}

/* Without an x: writes the names of the series, each at its own place on the axis. */
static void write_names(const struct drawing *drawing, FILE *to) {
  (void)fprintf(to, "set xrange [0.5:%zu.5]\nset xtics rotate by -30 left noenhanced (", drawing->count);
  for (size_t at = 0; at < drawing->count; at++) {
    (void)fputs(at == 0 ? "" : ", ", to);
    cv_lab_gnuplot_quote_tic(drawing->one[at].name, to);
    (void)fprintf(to, " %zu", at + 1);
  }
  (void)fputs(")\nunset key\n", to);
}

/* Labels each x of the first series, unless there are too many. */
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

/* ---- panels ---- */

static size_t columns_of(const struct drawing *drawing) {
  return drawing->cells > 4 ? 3 : 2;
}

/* How many names of the legend gnuplot sets beside each other at least; it is generous with the width of letters. */
static size_t legends_beside(const struct drawing *drawing) {
  size_t longest = 0;
  for (size_t i = 0; i < drawing->count; i++) {
    size_t n = base_of(&drawing->one[i]);
    longest = n > longest ? n : longest;
  }
  size_t most = 880 / (80 + 19 * longest / 2);
  return most < 1 ? 1 : most < LEGENDS_BESIDE ? most : LEGENDS_BESIDE;
}

static size_t legend_height(const struct drawing *drawing) {
  size_t beside = legends_beside(drawing);
  return 20 + LEGEND_HEIGHT * ((drawing->looks + beside - 1) / beside);
}

static size_t height_of(const struct drawing *drawing) {
  size_t rows = (drawing->cells + columns_of(drawing) - 1) / columns_of(drawing);
  return drawing->cells == 0 ? cv_lab_gnuplot_height(drawing->has_legend ? drawing->looks : 0)
                             : TITLE_HEIGHT + rows * PANEL_HEIGHT + legend_height(drawing);
}

/* Sets the margins of the next plot, as fractions of the whole picture. */
static void write_place(double left, double right, double bottom, double top, FILE *to) {
  (void)fprintf(to, "set lmargin at screen %.4f\nset rmargin at screen %.4f\n", left, right);
  (void)fprintf(to, "set bmargin at screen %.4f\nset tmargin at screen %.4f\n", bottom, top);
}

/* Writes one legend for all panels, as an empty plot at the bottom. */
static void write_legend(const struct drawing *drawing, FILE *to) {
  size_t named = 0;
  const char *separator = "plot ";
  (void)fputs(
      "unset border\nunset tics\nunset grid\nset title ''\nset xlabel ''\nset ylabel ''\n"
      "set key inside center center horizontal Left reverse noenhanced samplen 3 font ',11'\n"
      "set xrange [1:2]\nset yrange [1:2]\n",
      to);
  write_place(0.02, 0.98, 0, (double)legend_height(drawing) / (double)height_of(drawing), to);
  for (size_t at = 0; at < drawing->count; at++) {
    const struct one *one = &drawing->one[at];
    if (one->look == named) {
      struct cv_lab_look look = cv_lab_look_of(named++);
      (void)fprintf(to, "%s1/0 with linespoints ps 0.9 lw 1.5 dt %d pt %d lc rgb '%s' title ", separator, look.dashes,
                    look.shape, look.colour);
      cv_lab_gnuplot_quote_part(one->name, base_of(one), to);
      separator = ", \\\n  ";
    }
  }
  (void)fputs("\nunset key\nset xrange [*:*]\n", to);
}

static void write_panel(const struct drawing *drawing, size_t cell, FILE *to) {
  size_t columns = columns_of(drawing), column = cell % columns, row = cell / columns;
  double height = (double)height_of(drawing), top = height - TITLE_HEIGHT - (double)(row * PANEL_HEIGHT);
  double width = 0.91 / (double)columns, left = 0.09 + (double)column * width;
  bool is_last = cell + columns >= drawing->cells;
  write_place(left + .01, left + width - .02, (top - PANEL_HEIGHT + 75) / height, (top - 25) / height, to);
  (void)fprintf(to, "set format y '%s'\n", column == 0 ? "%h" : ""); /* all panels have the same scale */
  cv_lab_gnuplot_label("title", drawing->cell[cell], to);
  cv_lab_gnuplot_label("xlabel", is_last ? drawing->figure->x_label : "", to);
  cv_lab_gnuplot_label("ylabel", column == 0 ? drawing->figure->y_label : "", to);
  write_one_plot(drawing, drawing->cell[cell], to);
}

static void write_range(const struct drawing *drawing, FILE *to) {
  double low, high;
  range_of(drawing, &low, &high);
  (void)fprintf(to, "set yrange [%.6g:%.6g]\n", low, high);
}

static void write_panels(const struct drawing *drawing, FILE *to) {
  (void)fputs("set multiplot title ", to);
  cv_lab_gnuplot_quote_lines(drawing->figure->title, drawing->bars.text, to);
  (void)fputs(" font ',11'\n", to);
  write_legend(drawing, to);
  cv_lab_gnuplot_axes(to);
  write_tics(drawing, to);
  (void)fputs("set tics font ',10'\nset xtics rotate by 40 right\nset xlabel offset 0,1\n", to);
  /* A fixed range for all panels: gnuplot would choose one for each, and the panels could not be compared. */
  write_range(drawing, to);
  for (size_t i = 0; i < drawing->cells; i++) {
    write_panel(drawing, i, to);
  }
  (void)fputs("unset multiplot\n", to);
}

/* ---- the whole ---- */

/* Writes the names beside the plot; a thin line leads to each from its line's end. */
static void write_ends(const struct drawing *drawing, FILE *to) {
  size_t columns = 0;
  for (size_t i = 0; i < drawing->ends; i++) {
    const struct cv_lab_end *end = &drawing->end[i];
    const struct one *one = &drawing->one[end->series];
    const char *colour = cv_lab_look_of(one->look).colour;
    size_t length = columns_of_name(one);
    columns = length > columns ? length : columns;
    (void)fputs("set label ", to);
    cv_lab_gnuplot_quote(cv_lab_caption_of(one->name, one->is_asymptotic).text, to);
    (void)fprintf(to, " at graph 1.025, graph %.4f left noenhanced font ',10' tc rgb '%s'\n", end->place, colour);
    (void)fprintf(to, "set arrow from first %.10g, graph %.4f to graph 1.02, graph %.4f nohead lw 0.7 lc rgb '%s'\n",
                  one->end_x, end->at, end->place, colour);
  }
  if (drawing->ends > 0) {
    (void)fprintf(to, "set rmargin at screen %.4f\n", 1 - (34 + 7.4 * (double)columns) / 900);
    (void)fputs(drawing->has_legend ? "" : "unset key\n", to);
    write_range(drawing, to);
  }
}

static void write_plot(const void *data, FILE *to) {
  const struct drawing *drawing = data;
  if (drawing->cells > 0) {
    write_panels(drawing, to);
  } else {
    write_one_plot(drawing, NULL, to);
  }
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
  const char *about = drawing->cells == 0 ? drawing->bars.text : NULL; /* panels have it in their common title */
  cv_lab_gnuplot_begin(figure->title, about, drawing->has_x ? figure->x_label : NULL, figure->y_label, file);
  if (figure->log_x && drawing->has_x) {
    (void)fprintf(file, "set logscale x %d\n", is_power_of_two(drawing->last_x) ? 2 : 10);
    if (drawing->ends > 0) { /* names stand where the lines end, not a decade later */
      (void)fprintf(file, "set xrange [*:%.10g]\n", 1.03 * drawing->last_x);
    }
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
  write_ends(drawing, file);
  cv_lab_gnuplot_twice(drawing->name.text, height_of(drawing), write_plot, drawing, file);
  cv_lab_gnuplot_small(drawing->name.text, height_of(drawing), write_plot, drawing, file);
  return cv_lab_file_finish(file, folder, why);
}

/* The numbers of replicates that the bars rest on, and which series have bars or bands. */
struct ground {
  uint64_t least, most;
  bool has_bars, has_bands, has_lines;
};

static struct ground ground_of(const struct drawing *drawing) {
  struct ground ground = {.least = UINT64_MAX};
  for (size_t i = 0; i < drawing->result->rows; i++) {
    const struct cv_lab_row *row = &drawing->result->row[i];
    if (is_drawn(drawing, row) && row->n > 0) {
      ground.least = row->n < ground.least ? row->n : ground.least;
      ground.most = row->n > ground.most ? row->n : ground.most;
    }
  }
  for (size_t i = 0; i < drawing->count; i++) {
    const struct one *one = &drawing->one[i];
    ground.has_bands = ground.has_bands || (one->has_errors && is_in_band(one));
    ground.has_bars = ground.has_bars || (one->has_errors && !is_in_band(one));
    ground.has_lines = ground.has_lines || !one->has_errors;
  }
  return ground;
}

static struct cv_lab_bars say_bars(const struct drawing *drawing) {
  const struct ground ground = ground_of(drawing);
  const char *what = ground.has_bars && ground.has_bands ? "bars and bands" : ground.has_bands ? "bands" : "bars";
  const unsigned long long least = ground.least, most = ground.most;
  char count[64];
  struct cv_lab_bars bars = {"computed, not run"};
  if (most == 0) {
    return bars;
  }
  if (least < most) {
    (void)snprintf(count, sizeof(count), "%llu to %llu replicates", least, most);
  } else {
    (void)snprintf(count, sizeof(count), "%llu replicate%s", most, most == 1 ? "" : "s");
  }
  if (ground.has_bars || ground.has_bands) {
    (void)snprintf(bars.text, sizeof(bars.text), "%s: %s; %s%s", what, cv_lab_statistic_bar(drawing->figure->statistic),
                   count, ground.has_lines ? "; lines without them are computed" : "");
  } else {
    (void)snprintf(bars.text, sizeof(bars.text), "%s, too few for bars", count);
  }
  return bars;
}

struct cv_lab_bars cv_lab_figure_bars(const struct cv_lab_figure *figure, const struct cv_lab_result *result) {
  struct drawing drawing = {.figure = figure, .result = result};
  collect(&drawing);
  return say_bars(&drawing);
}

enum cv_err cv_lab_figure_draw(const struct cv_lab_figure *figure, const struct cv_lab_result *result,
                               const char *folder, struct cv_why *why) {
  struct drawing drawing = {.figure = figure, .result = result, .name = cv_lab_slug(figure->name, "")};
  CV_TRY(cv_lab_folder_make(folder, why));
  collect(&drawing);
  divide(&drawing);
  if (drawing.count == 0) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: there are no values of %s to draw", figure->name, figure->metric);
  }
  drawing.bars = say_bars(&drawing);
  place_ends(&drawing);
  CV_TRY(write_data(&drawing, folder, why));
  CV_TRY(write_script(&drawing, folder, why));
  return cv_lab_gnuplot_run(folder, drawing.name.text, why);
}
