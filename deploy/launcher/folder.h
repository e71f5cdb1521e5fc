/* SPDX-License-Identifier: Apache-2.0 */
/* Folders and small files of a deployment on this machine. New folders have mode 0700, new files mode 0600. */
#ifndef CV_LAUNCHER_FOLDER_H
#define CV_LAUNCHER_FOLDER_H

#include <stdbool.h>

#include "common/base/err.h"

enum { CV_FOLDER_BYTES = 1024 };

struct cv_folder {
  char path[CV_FOLDER_BYTES]; /* absolute */
  bool is_temporary;
};

/*
 * Makes the folder `path` if it does not exist; its parent must exist. NULL: makes a temporary folder. CV_ERR_EXISTS if
 * the folder is not empty, CV_ERR_IO if it cannot be made.
 */
CV_MUST_USE enum cv_err cv_folder_make(const char *path, struct cv_folder *ret, struct cv_why *why);
/* Makes a folder inside `folder`. */
CV_MUST_USE enum cv_err cv_folder_add(const struct cv_folder *folder, const char *name, struct cv_why *why);
/* Returns the path of `name` in the folder, in one of eight static buffers used in turn. */
const char *cv_folder_file(const struct cv_folder *folder, const char *name);
/* Replaces the file's content. */
CV_MUST_USE enum cv_err cv_folder_write(const char *path, const char *text, struct cv_why *why);
/* Removes the folder and everything in it. Does not follow links. */
void cv_folder_remove(const struct cv_folder *folder);

#endif
