/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures by gnuplot. For a figure NAME the folder gets NAME.dat (the numbers), NAME.gp (the script, which a user can
 * change and run again), NAME.svg, NAME.png, and NAME-small.png for a list of figures.
 */
#ifndef CV_LAB_FIGURE_H
#define CV_LAB_FIGURE_H

#include "lab/experiment/experiment.h"
#include "lab/result/result.h"

/* What the bars or bands of a figure are and how many replicates they rest on, from the rows: "bars: one standard error
 * of the mean to each side; 100 replicates". */
struct cv_lab_bars {
  char text[200];
};
struct cv_lab_bars cv_lab_figure_bars(const struct cv_lab_figure *figure, const struct cv_lab_result *result);

/* Draws the figure; makes the folder if it is missing. Without gnuplot it writes the first two files, and the error's
 * line names the script. CV_ERR_NOT_FOUND if no row has a value. */
CV_MUST_USE enum cv_err cv_lab_figure_draw(const struct cv_lab_figure *figure, const struct cv_lab_result *result,
                                           const char *folder, struct cv_why *why);

#endif
