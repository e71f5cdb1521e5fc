/* SPDX-License-Identifier: Apache-2.0 */
/* Folders and small files of a deployment on this machine. Folders are made with mode 0700, files with 0600. */
#ifndef CV_LAUNCHER_FOLDER_H
#define CV_LAUNCHER_FOLDER_H

#include <stdbool.h>

#include "common/base/err.h"

enum { CV_FOLDER_BYTES = 1024 };

struct cv_folder {
  char path[CV_FOLDER_BYTES]; /* absolute */
  bool is_temporary;
};

/* The folder `path`, made if it is missing (its parent must exist), refused if something is in it. NULL: a temporary
 * one. */
CV_MUST_USE enum cv_err cv_folder_make(const char *path, struct cv_folder *ret, struct cv_why *why);
CV_MUST_USE enum cv_err cv_folder_add(const struct cv_folder *folder, const char *name, struct cv_why *why);
/* The path of `name` in it, in one of eight buffers in turn. */
const char *cv_folder_file(const struct cv_folder *folder, const char *name);
CV_MUST_USE enum cv_err cv_folder_write(const char *path, const char *text, struct cv_why *why);
/* Everything in it, and itself. Does not follow links. */
void cv_folder_remove(const struct cv_folder *folder);

#endif
