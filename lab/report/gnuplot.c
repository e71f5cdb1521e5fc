/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/report/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/config/sink.h"

enum { PATH_BYTES = 4096, SMALL_WIDTH = 300 };

struct cv_lab_slug cv_lab_slug(const char *name, const char *ending) {
  struct cv_lab_slug slug;
  (void)snprintf(slug.text, sizeof(slug.text), "%.70s%s", name, ending);
  for (char *c = slug.text; *c != '\0'; c++) {
    bool is_word = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_';
    bool stays = is_word || (c != slug.text && (*c == '-' || *c == '.')); /* not in front: no hidden file, no option */
    *c = stays ? *c : '_';
  }
  return slug;
}

FILE *cv_lab_file_create(const char *folder, const char *name, const char *ending, struct cv_why *why) {
  char path[PATH_BYTES];
  (void)snprintf(path, sizeof(path), "%s/%s.%s", folder, name, ending);
  FILE *file = cv_sink_open(path);
  if (file == NULL) {
    cv_why_set(why, "%s: %s", path, strerror(errno));
  }
  return file;
}

enum cv_err cv_lab_file_finish(FILE *file, const char *folder, struct cv_why *why) {
  bool failed = ferror(file) != 0;
  failed = fclose(file) != 0 || failed; /* a full disk may show only when the buffer is written */
  return failed ? cv_fail(why, CV_ERR_IO, "%s: %s", folder, strerror(errno)) : CV_OK;
}

enum cv_err cv_lab_folder_make(const char *folder, struct cv_why *why) {
  return mkdir(folder, 0777) == 0 || errno == EEXIST ? CV_OK
                                                     : cv_fail(why, CV_ERR_IO, "%s: %s", folder, strerror(errno));
}

/* In single quotes only the quote itself, which must be doubled, and the end of the line are special. */
static void quote(const char *text, size_t n, char doubled, FILE *to) {
  (void)fputc('\'', to);
  for (size_t i = 0; i < n; i++) {
    bool is_control = (unsigned char)text[i] < ' ';
    if (text[i] == '\'' || text[i] == doubled) {
      (void)fputc(text[i], to);
    }
    (void)fputc(is_control ? ' ' : text[i], to);
  }
  (void)fputc('\'', to);
}

void cv_lab_gnuplot_quote_part(const char *text, size_t n, FILE *to) {
  quote(text, n, '\'', to);
}

void cv_lab_gnuplot_quote(const char *text, FILE *to) {
  quote(text, strlen(text), '\'', to);
}

void cv_lab_gnuplot_quote_tic(const char *text, FILE *to) {
  quote(text, strlen(text), '%', to);
}

struct cv_lab_look cv_lab_look_of(size_t series) {
  static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                        "#000000", "#e69f00", "#56b4e9", "#7f7f7f"};
  static const int shapes[] = {7, 5, 9, 11, 13, 6, 4, 8, 10, 12, 2, 1};
  return (struct cv_lab_look){.colour = colours[series % CV_COUNT(colours)],
                              .dashes = 1 + (int)((series + series / CV_COUNT(colours)) % 5),
                              .shape = shapes[series % CV_COUNT(shapes)]};
}

void cv_lab_gnuplot_label(const char *what, const char *text, FILE *to) {
  if (text != NULL) {
    (void)fprintf(to, "set %s ", what);
    cv_lab_gnuplot_quote(text, to);
    (void)fputs("\n", to);
  }
}

void cv_lab_gnuplot_axes(FILE *to) {
  (void)fputs(
      "set border 3 lc rgb '#444444'\nset tics nomirror tc rgb '#222222'\n"
      "set xtics nomirror\nset ytics nomirror\n"
      "set grid lt 1 lc rgb '#e0e0e0' lw 0.5\n",
      to);
}

void cv_lab_gnuplot_quote_lines(const char *first, const char *second, FILE *to) {
  cv_lab_gnuplot_quote(first, to);
  (void)fputs(".\"\\n\".", to);
  cv_lab_gnuplot_quote(second, to);
}

void cv_lab_gnuplot_begin(const char *title, const char *about, const char *x_label, const char *y_label, FILE *to) {
  (void)fputs("set encoding utf8\n", to);
  cv_lab_gnuplot_axes(to);
  (void)fputs(
      "set key below center horizontal Left reverse noenhanced samplen 4 spacing 1.2\nset bars 0.6\n"
      "set xlabel offset 0,0.35\n",
      to);
  if (about == NULL) {
    cv_lab_gnuplot_label("title", title, to);
  } else { /* in the middle of the picture, not of the plot, which may have names beside it */
    (void)fputs("set tmargin 4.2\nset label ", to);
    cv_lab_gnuplot_quote(title == NULL ? "" : title, to);
    (void)fputs(" at screen 0.5, graph 1 offset 0,2.2 center noenhanced\nset label ", to);
    cv_lab_gnuplot_quote(about, to);
    (void)fputs(" at screen 0.5, graph 1 offset 0,0.8 center noenhanced font ',10' tc rgb '#555555'\n", to);
  }
  cv_lab_gnuplot_label("xlabel", x_label, to);
  cv_lab_gnuplot_label("ylabel", y_label, to);
}

size_t cv_lab_gnuplot_height(size_t legends) {
  return 545 + 20 * ((legends + 1) / 2); /* legends mostly come in two columns */
}

void cv_lab_gnuplot_twice(const char *name, size_t height, void (*plot)(const void *data, FILE *to), const void *data,
                          FILE *to) {
  (void)fprintf(to, "set terminal svg size 900,%zu background rgb 'white' font 'sans,13' dashlength 1.2 noenhanced\n",
                height);
  (void)fprintf(to, "set output '%s.svg'\n", name);
  plot(data, to);
  (void)fprintf(to,
                "set terminal pngcairo size 1800,%zu font 'sans,13' fontscale 2 lw 2 ps 2 dashlength 1.2 noenhanced\n",
                2 * height);
  (void)fprintf(to, "set output '%s.png'\n", name);
  plot(data, to);
  (void)fputs("unset output\n", to);
}

void cv_lab_gnuplot_small(const char *name, size_t height, void (*plot)(const void *data, FILE *to), const void *data,
                          FILE *to) {
  (void)fprintf(
      to,
      "unset key\nunset title\nunset xlabel\nunset ylabel\nunset label\nunset arrow\n"
      "set rmargin -1\nset tmargin -1\nset xtics format ''\nset ytics format ''\n"
      "set terminal pngcairo size %d,%zu font 'sans,13' fontscale 0.35 lw 0.8 ps 0.5 dashlength 1.2 noenhanced\n"
      "set output '%s-small.png'\n",
      SMALL_WIDTH, SMALL_WIDTH * height / 900, name);
  plot(data, to);
  (void)fputs("unset output\n", to);
}

enum cv_err cv_lab_gnuplot_run(const char *folder, const char *name, struct cv_why *why) {
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
  /* In the folder: scripts name their files without a path, so that a user can run them again anywhere. */
  int failed = posix_spawn_file_actions_addchdir_np(&actions, folder);
  failed = failed != 0 ? failed : posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  failed = failed != 0 ? failed : posix_spawnp(&child, program, &actions, NULL, argv, environ);
  (void)posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return cv_fail(why, CV_ERR_IO, "cannot start gnuplot (%s); %s/%s is the script to run", strerror(failed), folder,
                   script);
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) { /* a signal is no reason to leave the child behind */
  }
  return status == 0 ? CV_OK
                     : cv_fail(why, CV_ERR_IO, "gnuplot failed on %s/%s; run gnuplot in that folder to see its error",
                               folder, script);
}
