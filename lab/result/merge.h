/* SPDX-License-Identifier: Apache-2.0 */
/* Files of results into one: what several machines, or runs with more and more replicates, have found. */
#ifndef CV_LAB_MERGE_H
#define CV_LAB_MERGE_H

#include "lab/result/archive.h"

struct cv_lab_merged {
  uint64_t settings, trials, replicates; /* replicates: the highest number of one, and 1 */
  uint64_t missing;                      /* trials that all settings x replicates would need on top */
};

/*
 * `out` must not exist (CV_ERR_EXISTS), and is there whole or not at all. Files that do not belong together, or that
 * say different numbers for the same trial, are refused: CV_ERR_INVALID and one line that names the file.
 */
CV_MUST_USE enum cv_err cv_lab_merge(const char *out, const char *const *files, size_t count, struct cv_lab_merged *ret,
                                     struct cv_why *why);

#endif
