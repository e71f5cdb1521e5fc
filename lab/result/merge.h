/* SPDX-License-Identifier: Apache-2.0 */
/* Merges files of results: from several machines, or from runs with more replicates. */
#ifndef CV_LAB_MERGE_H
#define CV_LAB_MERGE_H

#include "lab/result/archive.h"

struct cv_lab_merged {
  uint64_t settings, trials, replicates; /* replicates: the highest number plus 1 */
  uint64_t missing;                      /* settings x replicates minus trials */
};

/*
 * Merges `files` into `out`, which must not exist (CV_ERR_EXISTS) and is created completely or not at all. Files of
 * different origins, or with different values for the same trial, are refused: CV_ERR_INVALID with one line that names
 * the file.
 */
CV_MUST_USE enum cv_err cv_lab_merge(const char *out, const char *const *files, size_t count, struct cv_lab_merged *ret,
                                     struct cv_why *why);

#endif
