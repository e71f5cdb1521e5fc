/* SPDX-License-Identifier: Apache-2.0 */
/* Prints an outcome as a table. */
#ifndef CV_LAUNCHER_TABLE_H
#define CV_LAUNCHER_TABLE_H

#include "deploy/launcher/outcome.h"

/* Prints a ranking by class, any other outcome with cv_pulls_print(), then the epsilon, tokens and time it took. */
void cv_table_print(const struct cv_outcome *outcome, FILE *to);

#endif
