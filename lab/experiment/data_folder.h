/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the data file of an experiment in a folder by the columns that its campaign reads, whatever its name. */
#ifndef CV_LAB_DATA_FOLDER_H
#define CV_LAB_DATA_FOLDER_H

#include "lab/experiment/experiment.h"

enum { CV_LAB_DATA_COLUMNS = 4, CV_LAB_DATA_PATH = 4096, CV_LAB_DATA_TEXT = 300 };

/* The columns that the header line of the data must have; none: no such file is read. */
struct cv_lab_data_need {
  char column[CV_LAB_DATA_COLUMNS][CV_NAME_BYTES];
  size_t columns;
  char delimiter;
};

/* Sets what the first campaign of the experiment reads; an SQLite database or JSON Lines counts as nothing. */
CV_MUST_USE enum cv_err cv_lab_data_need(const struct cv_lab_experiment *experiment, struct cv_lab_data_need *ret,
                                         struct cv_why *why);
/* The columns as text: "taxi_id, trip_miles and pickup_community_area". */
void cv_lab_data_columns(const struct cv_lab_data_need *need, char to[CV_LAB_DATA_TEXT]);

/*
 * Sets the absolute path of the only file in the folder or in a folder directly within it that has the columns; other
 * columns do not matter, hidden files and folders are left out. CV_ERR_NOT_FOUND if there is none, CV_ERR_EXISTS with
 * the names of two if there are several, CV_ERR_IO or CV_ERR_NOMEM, each with one line.
 */
CV_MUST_USE enum cv_err cv_lab_data_find(const char *folder, const struct cv_lab_data_need *need,
                                         char path[CV_LAB_DATA_PATH], struct cv_why *why);

#endif
