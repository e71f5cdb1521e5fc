/* SPDX-License-Identifier: Apache-2.0 */
/* Open files of this process: each part that can need many reserves them, so that one does not take another's. */
#ifndef CV_BASE_FILES_H
#define CV_BASE_FILES_H

#include <stdint.h>

struct cv_files {
  unsigned granted;      /* of those that were asked for; cv_files_release() gives them back */
  uint64_t needed, most; /* by the process, with all of them; and what the system permits */
};

/* Raises the process's limit (RLIMIT_NOFILE) by as much as is missing, up to what the system permits. */
struct cv_files cv_files_reserve(unsigned n);
void cv_files_release(const struct cv_files *files);

#endif
