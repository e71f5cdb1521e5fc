/* SPDX-License-Identifier: Apache-2.0 */
/* Results as comma-separated values: a header line, then one line per value; texts in quotes, numbers with 17 digits,
 * missing numbers empty. */
#ifndef CV_LAB_CSV_H
#define CV_LAB_CSV_H

#include <stdio.h>

#include "lab/result/archive.h"
#include "lab/result/result.h"

/* Writes the rows with the columns of cv_lab_print_json(). CV_ERR_IO if writing fails. */
CV_MUST_USE enum cv_err cv_lab_csv_rows(const struct cv_lab_result *result, FILE *to);
/* Writes each value of each trial: series, x, metric, replicate (from 1), value. CV_ERR_IO if writing fails, or an
 * error of reading. */
CV_MUST_USE enum cv_err cv_lab_csv_trials(struct cv_lab_archive *archive, FILE *to, struct cv_why *why);

#endif
