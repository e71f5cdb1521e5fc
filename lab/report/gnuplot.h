/* SPDX-License-Identifier: Apache-2.0 */
/* Gnuplot as a subprocess: its files, its quoting, and the common style of all figures. */
#ifndef CV_LAB_GNUPLOT_H
#define CV_LAB_GNUPLOT_H

#include <stdio.h>

#include "common/base/err.h"

/* A name turned into a file name: letters, digits and _-. stay (the last two not in front), other bytes become _. */
struct cv_lab_slug {
  char text[96];
};
struct cv_lab_slug cv_lab_slug(const char *name, const char *ending);

/* Opens "FOLDER/NAME.ENDING" for writing; NULL with the reason. */
FILE *cv_lab_file_create(const char *folder, const char *name, const char *ending, struct cv_why *why);
/* Closes a file; CV_ERR_IO with one line if any write failed. */
CV_MUST_USE enum cv_err cv_lab_file_finish(FILE *file, const char *folder, struct cv_why *why);
/* Makes a folder unless it exists. */
CV_MUST_USE enum cv_err cv_lab_folder_make(const char *folder, struct cv_why *why);

/* Writes a quoted text that gnuplot reads literally, whatever it contains. */
void cv_lab_gnuplot_quote(const char *text, FILE *to);
/* The same for a label on an axis, which gnuplot interprets as a format. */
void cv_lab_gnuplot_quote_tic(const char *text, FILE *to);
/* The same for the first `n` bytes. */
void cv_lab_gnuplot_quote_part(const char *text, size_t n, FILE *to);

/*
 * The style of series number i: a colour that people with colour blindness can distinguish (Okabe and Ito, "Color
 * Universal Design", 2008), and for print without colour its dashes and the shape of its points. There are twelve
 * shapes; the eight colours repeat with other dashes and shapes.
 */
struct cv_lab_look {
  const char *colour;
  int dashes, shape;
};
struct cv_lab_look cv_lab_look_of(size_t series);

/* Writes the head of a script. `about` stands in small letters below the title. All texts may be NULL. */
void cv_lab_gnuplot_begin(const char *title, const char *about, const char *x_label, const char *y_label, FILE *to);
/* Writes the settings of axes and grid, as cv_lab_gnuplot_begin() does. */
void cv_lab_gnuplot_axes(FILE *to);
/* Writes `set WHAT 'TEXT'`; nothing if `text` is NULL. */
void cv_lab_gnuplot_label(const char *what, const char *text, FILE *to);
/* Writes the plot commands, by `plot`, twice: for NAME.svg, 900 wide and `height` high, and NAME.png, twice as
 * large. */
void cv_lab_gnuplot_twice(const char *name, size_t height, void (*plot)(const void *data, FILE *to), const void *data,
                          FILE *to);
/* Writes the plot once more for NAME-small.png, without names and legend, as a thumbnail 300 wide. */
void cv_lab_gnuplot_small(const char *name, size_t height, void (*plot)(const void *data, FILE *to), const void *data,
                          FILE *to);
/* Writes two texts as one, in two lines, for a title. */
void cv_lab_gnuplot_quote_lines(const char *first, const char *second, FILE *to);
/* The height of a plot with this many legends below it. */
size_t cv_lab_gnuplot_height(size_t legends);
/* Runs gnuplot on FOLDER/NAME.gp, in the folder. */
CV_MUST_USE enum cv_err cv_lab_gnuplot_run(const char *folder, const char *name, struct cv_why *why);

#endif
