/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results on disk, piece by piece, while an experiment runs: a file (archive.h) that an interruption leaves usable. It
 * says which experiment, seed and way of drawing it belongs to and takes no other's.
 */
#ifndef CV_LAB_STORE_H
#define CV_LAB_STORE_H

#include "lab/result/dataset.h"

struct cv_lab_store;

/* What must be equal for two results to belong together. The number of replicates may differ. */
struct cv_lab_identity {
  const struct cv_lab_experiment *experiment; /* its text and its data's */
  uint64_t seed;
  bool token_level;
};

/*
 * Opens or makes the file. One with results needs `resume` (else CV_ERR_EXISTS); it is refused if it belongs to other
 * settings (CV_ERR_INVALID, which is named), is damaged (every trial is looked at), no such file, of a later version,
 * or open in another process. One line each. The identity is needed no longer than this call.
 */
CV_MUST_USE enum cv_err cv_lab_store_open(const char *path, const struct cv_lab_identity *identity, bool resume,
                                          struct cv_lab_store **ret, struct cv_why *why);
/* Commits what is waiting; frees the store whatever comes of that. May be NULL. */
CV_MUST_USE enum cv_err cv_lab_store_close(struct cv_lab_store *store, struct cv_why *why);

/* Whether the piece was there when the file was opened. From any thread. */
bool cv_lab_store_has(const struct cv_lab_store *store, size_t setting, uint64_t replicate);
/*
 * One piece that is not there: cv_lab_piece_values() numbers, finite or NAN. From any thread. It is on disk within a
 * second: no interruption loses more. An error, also of an earlier commit, is the end of the store: all that is left to
 * do is to close it.
 */
CV_MUST_USE enum cv_err cv_lab_store_put(struct cv_lab_store *store, size_t setting, uint64_t replicate,
                                         const double *values, struct cv_why *why);
/* Fills the dataset with all that is there, up to its replicates. */
CV_MUST_USE enum cv_err cv_lab_store_load(struct cv_lab_store *store, struct cv_lab_dataset *dataset,
                                          struct cv_why *why);

#endif
