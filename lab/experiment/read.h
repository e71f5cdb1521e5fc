/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an experiment; experiment.h describes the format. */
#ifndef CV_LAB_READ_H
#define CV_LAB_READ_H

#include "lab/experiment/experiment.h"

/*
 * Reads and checks the section `experiment`. `path` is for messages; `text`, of `bytes` bytes, is the file's content
 * and is copied; `data` (NULL: none) replaces the campaign's data file and is borrowed. *ret must not move afterwards.
 * Errors are one line with line and column.
 */
CV_MUST_USE enum cv_err cv_lab_experiment_parse(const char *path, const char *text, size_t bytes, const char *data,
                                                struct cv_lab_experiment *ret, struct cv_why *why);
/* The same from a file. */
CV_MUST_USE enum cv_err cv_lab_experiment_load(const char *path, const char *data, struct cv_lab_experiment *ret,
                                               struct cv_why *why);
void cv_lab_experiment_fini(struct cv_lab_experiment *experiment);

#endif
