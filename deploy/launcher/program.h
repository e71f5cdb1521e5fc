/* SPDX-License-Identifier: Apache-2.0 */
/* The other programs of this deployment: where one lies, and one that is run to its end. */
#ifndef CV_LAUNCHER_PROGRAM_H
#define CV_LAUNCHER_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#include "common/base/err.h"

enum { CV_PROGRAM_ARGS = 12, CV_PROGRAM_LINE = 8192 };

/* Next to this program, in its build folder, or on the PATH. `self` becomes this program's own path. */
bool cv_program_find(const char *program, char self[PATH_MAX], char to[PATH_MAX]);

/* A line of its standard output, without its end; the callee may write into it. */
typedef void cv_program_line_fn(void *data, char *line);
/* `args`: at most CV_PROGRAM_ARGS, then NULL. Its standard error is ours. */
CV_MUST_USE enum cv_err cv_program_run(const char *program, const char *const *args, cv_program_line_fn *each,
                                       void *data, int *ret_status, struct cv_why *why);

#endif
