/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/figure.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, SERIES_MAX = 64 };

struct drawing {
  const struct cv_lab_figure *figure;
  const struct cv_lab_result *result;
  const char *series[SERIES_MAX];
  bool has_errors[SERIES_MAX];
  size_t count;
};

static FILE *create(const char *folder, const char *name, const char *ending, struct cv_why *why) {
  char path[PATH_BYTES];
  (void)snprintf(path, sizeof(path), "%s/%s.%s", folder, name, ending);
  FILE *file = fopen(path, "we");
  if (file == NULL) {
    cv_why_set(why, "%s: %s", path, strerror(errno));
  }
  return file;
}

static enum cv_err finish(FILE *file, const char *folder, struct cv_why *why) {
  bool failed = ferror(file) != 0;
  failed = fclose(file) != 0 || failed;
  return failed ? cv_fail(why, CV_ERR_IO, "%s: %s", folder, strerror(errno)) : CV_OK;
}

static bool is_drawn(const struct drawing *drawing, const struct cv_lab_row *row) {
  return strcmp(row->metric, drawing->figure->metric) == 0 && isfinite(row->mean) && isfinite(row->x);
}

static void collect(struct drawing *drawing) {
  for (size_t i = 0; i < drawing->result->rows; i++) {
    const struct cv_lab_row *row = &drawing->result->row[i];
    size_t at = 0;
    while (at < drawing->count && strcmp(drawing->series[at], row->series) != 0) {
      at++;
    }
    if (at == drawing->count && is_drawn(drawing, row) && drawing->count < SERIES_MAX) {
      drawing->has_errors[drawing->count] = isfinite(row->se);
      drawing->series[drawing->count++] = row->series;
    }
  }
}

/* One block a series, in gnuplot's way: two blank lines between. */
static enum cv_err write_data(const struct drawing *drawing, const char *folder, struct cv_why *why) {
  FILE *file = create(folder, drawing->figure->name, "dat", why);
  if (file == NULL) {
    return CV_ERR_IO;
  }
  (void)fprintf(file, "# %s: x mean se n\n", drawing->figure->metric);
  for (size_t at = 0; at < drawing->count; at++) {
    (void)fprintf(file, "%s# %s\n", at == 0 ? "" : "\n\n", drawing->series[at]);
    for (size_t i = 0; i < drawing->result->rows; i++) {
      const struct cv_lab_row *row = &drawing->result->row[i];
      if (is_drawn(drawing, row) && strcmp(row->series, drawing->series[at]) == 0) {
        (void)fprintf(file, "%.10g %.10g %.10g %llu\n", row->x, row->mean, isfinite(row->se) ? row->se : 0.0,
                      (unsigned long long)row->n);
      }
    }
  }
  return finish(file, folder, why);
}

/* Okabe and Ito's colours, which people with colour blindness can tell apart, and two more. */
static const char *const palette[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000",
                                      "#e69f00", "#56b4e9", "#8c564b", "#7f7f7f", "#bcbd22"};

/* The index of the series whose theory this one is; its own if it is none. */
static size_t subject(const struct drawing *drawing, size_t at) {
  static const char ending[] = ", theory";
  size_t n = strlen(drawing->series[at]), m = sizeof(ending) - 1;
  if (n <= m || strcmp(drawing->series[at] + n - m, ending) != 0) {
    return at;
  }
  for (size_t i = 0; i < drawing->count; i++) {
    if (strlen(drawing->series[i]) == n - m && strncmp(drawing->series[i], drawing->series[at], n - m) == 0) {
      return i;
    }
  }
  return at;
}

static void write_plot(const struct drawing *drawing, const char *terminal, const char *ending, FILE *file) {
  size_t rank[SERIES_MAX], named = 0;
  (void)fprintf(file, "set terminal %s\nset output '%s.%s'\nplot", terminal, drawing->figure->name, ending);
  for (size_t at = 0; at < drawing->count; at++) {
    size_t of = subject(drawing, at);
    named += of == at;
    rank[at] = of == at ? named - 1 : rank[of];
    (void)fprintf(file, "%s '%s.dat' index %zu %s%zu lc rgb '%s' ", at == 0 ? "" : ",", drawing->figure->name, at,
                  drawing->has_errors[at] ? "using 1:2:3 with yerrorbars ps 0.7 pt " : "with lines lw 1.5 dt ",
                  drawing->has_errors[at] ? rank[at] + 4 : 1 + rank[at] / CV_COUNT(palette),
                  palette[rank[at] % CV_COUNT(palette)]);
    if (of == at) {
      (void)fprintf(file, "title '%s'", drawing->series[at]);
    } else {
      (void)fputs("notitle", file);
    }
  }
  (void)fputs("\nunset output\n", file);
}

static enum cv_err write_script(const struct drawing *drawing, const char *folder, struct cv_why *why) {
  const struct cv_lab_figure *figure = drawing->figure;
  FILE *file = create(folder, figure->name, "gp", why);
  if (file == NULL) {
    return CV_ERR_IO;
  }
  (void)fprintf(file, "set title '%s' noenhanced\nset xlabel '%s' noenhanced\nset ylabel '%s' noenhanced\n",
                figure->title, figure->x_label, figure->y_label);
  (void)fprintf(file, "set key outside right noenhanced\nset grid lc rgb '#dddddd'\nset border 3\nset tics nomirror\n");
  (void)fprintf(file, "%s%s", figure->log_x ? "set logscale x 2\n" : "", figure->log_y ? "set logscale y\n" : "");
  write_plot(drawing, "svg size 900,560 background rgb 'white' font 'sans,12'", "svg", file);
  write_plot(drawing, "pngcairo size 1200,750 font 'sans,12'", "png", file);
  return finish(file, folder, why);
}

static enum cv_err run_gnuplot(const char *folder, const char *name, struct cv_why *why) {
  extern char **environ;
  char script[PATH_BYTES];
  char program[] = "gnuplot";
  char *argv[] = {program, script, NULL};
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = -1;
  (void)snprintf(script, sizeof(script), "%s.gp", name);
  if (posix_spawn_file_actions_init(&actions) != 0) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  int failed = posix_spawn_file_actions_addchdir_np(&actions, folder);
  failed = failed != 0 ? failed : posix_spawnp(&child, program, &actions, NULL, argv, environ);
  (void)posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return cv_fail(why, CV_ERR_IO, "gnuplot cannot be started (%s); %s/%s is ready for it", strerror(failed), folder,
                   script);
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0 ? CV_OK : cv_fail(why, CV_ERR_IO, "gnuplot could not draw %s/%s", folder, script);
}

enum cv_err cv_lab_figure_draw(const struct cv_lab_figure *figure, const struct cv_lab_result *result,
                               const char *folder, struct cv_why *why) {
  struct drawing drawing = {.figure = figure, .result = result};
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", folder, strerror(errno));
  }
  collect(&drawing);
  CV_TRY(write_data(&drawing, folder, why));
  CV_TRY(write_script(&drawing, folder, why));
  return run_gnuplot(folder, figure->name, why);
}
