/* SPDX-License-Identifier: Apache-2.0 */
/* Gnuplot as a subprocess: its files, its way to write text, and a look that all figures share. */
#ifndef CV_LAB_GNUPLOT_H
#define CV_LAB_GNUPLOT_H

#include <stdio.h>

#include "common/base/err.h"

/* A name as a file's: letters, digits and _-. stay (the last two not in front), others become _. */
struct cv_lab_slug {
  char text[96];
};
struct cv_lab_slug cv_lab_slug(const char *name, const char *ending);

/* "FOLDER/NAME.ENDING" for writing; NULL with the reason. */
FILE *cv_lab_file_create(const char *folder, const char *name, const char *ending, struct cv_why *why);
/* Closes it; an error if it did not take everything. */
CV_MUST_USE enum cv_err cv_lab_file_finish(FILE *file, const char *folder, struct cv_why *why);
/* Made unless it is there. */
CV_MUST_USE enum cv_err cv_lab_folder_make(const char *folder, struct cv_why *why);

/* A text as gnuplot reads it to be one, whatever is in it. */
void cv_lab_gnuplot_quote(const char *text, FILE *to);
/* The same as the name of a place on an axis, which gnuplot takes for a format. */
void cv_lab_gnuplot_quote_tic(const char *text, FILE *to);
/* Its first `n` bytes. */
void cv_lab_gnuplot_quote_part(const char *text, size_t n, FILE *to);

/*
 * How the i-th series is told from the others: by colours that people with colour blindness can tell apart (Okabe and
 * Ito, "Color Universal Design", 2008), and in print without colour by its dashes and the shape of its points. There
 * are twelve of each; the colours repeat after eight, with other dashes and shapes.
 */
struct cv_lab_look {
  const char *colour;
  int dashes, shape;
};
struct cv_lab_look cv_lab_look_of(size_t series);

/* What stands before every plot. `title` and the labels may be NULL. */
void cv_lab_gnuplot_begin(const char *title, const char *x_label, const char *y_label, FILE *to);
/* Axes and a grid, as begin has them. */
void cv_lab_gnuplot_axes(FILE *to);
/* `set WHAT 'TEXT'`; nothing if it is NULL. */
void cv_lab_gnuplot_label(const char *what, const char *text, FILE *to);
/* The plot commands twice, by `plot`, into NAME.svg and NAME.png, 900 wide and so high (the latter twice as large). */
void cv_lab_gnuplot_twice(const char *name, size_t height, void (*plot)(const void *data, FILE *to), const void *data,
                          FILE *to);
/* How high a plot with so many legends below is. */
size_t cv_lab_gnuplot_height(size_t legends);
/* Runs FOLDER/NAME.gp in the folder. */
CV_MUST_USE enum cv_err cv_lab_gnuplot_run(const char *folder, const char *name, struct cv_why *why);

#endif
