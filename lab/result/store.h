/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores results on disk, piece by piece, while an experiment runs: a file (archive.h) that remains usable after an
 * interruption. It states its experiment, its seed and its way of drawing, and accepts no other results.
 */
#ifndef CV_LAB_STORE_H
#define CV_LAB_STORE_H

#include "lab/result/dataset.h"

struct cv_lab_store;

/* Results belong together if these are equal. The number of replicates may differ. */
struct cv_lab_identity {
  const struct cv_lab_experiment *experiment; /* its text and the content of its data files */
  uint64_t seed;
  bool token_level;
};

/*
 * Opens the file, or makes it. A file with results needs `resume` (else CV_ERR_EXISTS). It is refused if it has another
 * identity (CV_ERR_INVALID with the difference), is damaged (every trial is checked), is not a file of results, is of a
 * later version, or is open in another process. One line each. `identity` is borrowed for the call.
 */
CV_MUST_USE enum cv_err cv_lab_store_open(const char *path, const struct cv_lab_identity *identity, bool resume,
                                          struct cv_lab_store **ret, struct cv_why *why);
/* Commits waiting pieces, and frees the store even if that fails. May be NULL. */
CV_MUST_USE enum cv_err cv_lab_store_close(struct cv_lab_store *store, struct cv_why *why);

/* True if the file had the piece when it was opened. From any thread. */
bool cv_lab_store_has(const struct cv_lab_store *store, size_t setting, uint64_t replicate);
/*
 * Stores one piece that the file does not have: cv_lab_piece_values() values, finite or NAN. From any thread. The piece
 * is on disk within a second, so an interruption loses at most the last second. After an error, also one of an earlier
 * commit, the store can only be closed.
 */
CV_MUST_USE enum cv_err cv_lab_store_put(struct cv_lab_store *store, size_t setting, uint64_t replicate,
                                         const double *values, struct cv_why *why);
/* Copies all stored pieces to the dataset, up to its number of replicates. */
CV_MUST_USE enum cv_err cv_lab_store_load(struct cv_lab_store *store, struct cv_lab_dataset *dataset,
                                          struct cv_why *why);

#endif
