/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the other programs of this deployment, and runs one until it ends. */
#ifndef CV_LAUNCHER_PROGRAM_H
#define CV_LAUNCHER_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#include "common/base/err.h"

enum { CV_PROGRAM_ARGS = 12, CV_PROGRAM_LINE = 8192 };

/*
 * Looks for `program` next to this program, in its build folder and on the PATH. On success `to` is its absolute path
 * and `self` the path of this program. Returns false if it is not found.
 */
bool cv_program_find(const char *program, char self[PATH_MAX], char to[PATH_MAX]);

/* Receives one line of standard output without its newline; the callee may modify it. */
typedef void cv_program_line_fn(void *data, char *line);
/*
 * Runs `program` and waits until it ends. `args`: at most CV_PROGRAM_ARGS, then NULL. The program inherits standard
 * error. *ret_status is its exit status, or 128 plus the signal that ended it.
 */
CV_MUST_USE enum cv_err cv_program_run(const char *program, const char *const *args, cv_program_line_fn *each,
                                       void *data, int *ret_status, struct cv_why *why);

#endif
