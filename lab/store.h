/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results on disk, piece by piece, while an experiment runs: an SQLite file that an interruption leaves usable. It says
 * which experiment, seed and way of drawing it belongs to and takes no other's.
 */
#ifndef CV_LAB_STORE_H
#define CV_LAB_STORE_H

#include "lab/dataset.h"

struct cv_lab_store;

/* What must be equal for two results to belong together. The number of replicates may differ. */
struct cv_lab_identity {
  const struct cv_lab_experiment *experiment; /* its text and its data's */
  uint64_t seed;
  bool token_level;
};

/*
 * Opens or makes the file. One that is there needs `resume`; it is refused if it belongs to other settings (which is
 * named), is damaged, or is no such file. One line each.
 */
CV_MUST_USE enum cv_err cv_lab_store_open(const char *path, const struct cv_lab_identity *identity, bool resume,
                                          struct cv_lab_store **ret, struct cv_why *why);
/* Commits what is waiting. */
CV_MUST_USE enum cv_err cv_lab_store_close(struct cv_lab_store *store, struct cv_why *why);

bool cv_lab_store_has(struct cv_lab_store *store, size_t setting, uint64_t replicate);
/* From any thread. Commits now and then: an interruption loses a second's work at most. */
CV_MUST_USE enum cv_err cv_lab_store_put(struct cv_lab_store *store, size_t setting, uint64_t replicate,
                                         const double *values, struct cv_why *why);
/* Fills the dataset with all that is there, up to its replicates. */
CV_MUST_USE enum cv_err cv_lab_store_load(struct cv_lab_store *store, struct cv_lab_dataset *dataset,
                                          struct cv_why *why);
/* Takes the pieces of another file in; both must belong together. A piece that both have must be the same. */
CV_MUST_USE enum cv_err cv_lab_store_merge(struct cv_lab_store *store, const char *other, struct cv_why *why);

#endif
