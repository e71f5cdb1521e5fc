/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard input, output and error of a program: all three are there, whoever started it, and a result that could not
 * be written is no success.
 */
#ifndef CV_CONFIG_STANDARD_H
#define CV_CONFIG_STANDARD_H

#include "common/base/err.h"

/*
 * The first call of each main(). Descriptors 0 to 2 that are closed are filled, so that no file or connection gets
 * their numbers: 0 is at its end, and writes to 1 and 2 fail. A reader that has gone, and a file that is as large as
 * it may be, are errors of a write, not the end of the process.
 */
void cv_standard_open(void);
/* A descriptor to read nothing from, for the input of a program that is started; /dev/null may be missing. -1, with
 * errno: there is none left. The caller closes it. */
int cv_standard_nothing(void);
/* A result could not be made for want of memory: counts as one that could not be written. */
void cv_standard_lose(void);
/* Why standard output could not be written: "standard output: <the first failure>". */
const char *cv_standard_reason(void);
/*
 * The last call of a program that has written results: closes standard output and returns the exit status. That is
 * `status`, or 1 if it is 0 and something could not be written; then one line on standard error has the reason of the
 * first failure. A reader that has gone (`| head`) is told by the status alone.
 */
CV_MUST_USE int cv_standard_close(const char *program, int status);

#endif
