/* SPDX-License-Identifier: Apache-2.0 */
/* Results as comma-separated values: a head, then a line each; texts in quotes, numbers with every bit, or nothing. */
#ifndef CV_LAB_CSV_H
#define CV_LAB_CSV_H

#include <stdio.h>

#include "lab/result/archive.h"
#include "lab/result/result.h"

/* The rows, as cv_lab_print_json() has them. CV_ERR_IO if the file does not take it. */
CV_MUST_USE enum cv_err cv_lab_csv_rows(const struct cv_lab_result *result, FILE *to);
/* series, x, metric, replicate (from 1), value: each number of each trial. CV_ERR_IO as above, or as reading fails. */
CV_MUST_USE enum cv_err cv_lab_csv_trials(struct cv_lab_archive *archive, FILE *to, struct cv_why *why);

#endif
