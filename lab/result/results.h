/* SPDX-License-Identifier: Apache-2.0 */
/* A file of results in memory: its experiment, and the values measured so far. */
#ifndef CV_LAB_RESULTS_H
#define CV_LAB_RESULTS_H

#include "lab/result/archive.h"
#include "lab/result/dataset.h"

/* Must not move after reading. */
struct cv_lab_results {
  struct cv_lab_origin origin;
  struct cv_lab_experiment experiment;
  struct cv_lab_dataset dataset; /* up to the highest replicate number in the file */
};

/*
 * Reads a whole file; the caller frees it. The experiment's data files may be missing. CV_ERR_NOT_FOUND,
 * CV_ERR_DAMAGED, CV_ERR_VERSION (also if this version measures other values), CV_ERR_LIMIT, CV_ERR_STATE while a run
 * writes to the file: one line each.
 */
CV_MUST_USE enum cv_err cv_lab_results_read(const char *path, struct cv_lab_results *ret, struct cv_why *why);
void cv_lab_results_fini(struct cv_lab_results *results);

/* Copies an archive's trials to a dataset of the same experiment; ignores trials beyond the dataset's replicates. */
CV_MUST_USE enum cv_err cv_lab_results_fill(struct cv_lab_archive *archive, const struct cv_lab_origin *origin,
                                            struct cv_lab_dataset *dataset, struct cv_why *why);
/* True if the origin's sizes are those of the experiment. */
bool cv_lab_results_fit(const struct cv_lab_origin *origin, const struct cv_lab_experiment *experiment);

#endif
