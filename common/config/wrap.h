/* SPDX-License-Identifier: Apache-2.0 */
/* Text for a terminal of 100 columns. */
#ifndef CV_CONFIG_WRAP_H
#define CV_CONFIG_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* Prints `text` and a newline, broken between words. `column` columns of the first line are already written; the
 * further lines are indented by `indent` columns. */
void cv_wrap_print(FILE *to, size_t column, size_t indent, const char *text);

#endif
