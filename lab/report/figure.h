/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures by gnuplot. For a figure NAME the folder gets NAME.dat (the numbers), NAME.gp (the script, to be changed and
 * run again by whoever wants another look), NAME.svg and NAME.png.
 */
#ifndef CV_LAB_FIGURE_H
#define CV_LAB_FIGURE_H

#include "lab/experiment/experiment.h"
#include "lab/result/result.h"

/* The folder is made if it is not there. Without gnuplot the first two files are there and the line says so.
 * CV_ERR_NOT_FOUND if no row has a number. */
CV_MUST_USE enum cv_err cv_lab_figure_draw(const struct cv_lab_figure *figure, const struct cv_lab_result *result,
                                           const char *folder, struct cv_why *why);

#endif
