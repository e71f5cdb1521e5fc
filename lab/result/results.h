/* SPDX-License-Identifier: Apache-2.0 */
/* A file of results read back: the experiment that it is of, and what has been measured so far. */
#ifndef CV_LAB_RESULTS_H
#define CV_LAB_RESULTS_H

#include "lab/result/archive.h"
#include "lab/result/dataset.h"

/* Must not move once it is read. */
struct cv_lab_results {
  struct cv_lab_origin origin;
  struct cv_lab_experiment experiment;
  struct cv_lab_dataset dataset; /* as many replicates as the highest number of one says */
};

/*
 * The whole file. The data that the experiment draws from need not be there. CV_ERR_NOT_FOUND, CV_ERR_DAMAGED,
 * CV_ERR_VERSION (also if this program measures other numbers), CV_ERR_LIMIT, CV_ERR_STATE while an experiment writes
 * it: one line each.
 */
CV_MUST_USE enum cv_err cv_lab_results_read(const char *path, struct cv_lab_results *ret, struct cv_why *why);
void cv_lab_results_fini(struct cv_lab_results *results);

/* Fills a dataset of the origin's experiment with an archive's trials, those beyond its replicates left out. */
CV_MUST_USE enum cv_err cv_lab_results_fill(struct cv_lab_archive *archive, const struct cv_lab_origin *origin,
                                            struct cv_lab_dataset *dataset, struct cv_why *why);
/* Whether the origin's numbers are those of the experiment. */
bool cv_lab_results_fit(const struct cv_lab_origin *origin, const struct cv_lab_experiment *experiment);

#endif
