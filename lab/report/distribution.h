/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distribution of the replicates: per series a box from the first to the third quartile with the median and the
 * mean, whiskers from the 5 % to the 95 % quantile, and the replicates themselves; at each x if there are few, else at
 * the last.
 */
#ifndef CV_LAB_DISTRIBUTION_H
#define CV_LAB_DISTRIBUTION_H

#include "lab/result/dataset.h"

/* Draws the experiment's first metric into the folder, like cv_lab_figure_draw() and with its errors, as figure
 * "NAME-distribution". */
CV_MUST_USE enum cv_err cv_lab_distribution_draw(const struct cv_lab_dataset *dataset, const char *folder,
                                                 struct cv_why *why);

#endif
