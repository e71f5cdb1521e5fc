/* SPDX-License-Identifier: Apache-2.0 */
/* An outcome for a person. */
#ifndef CV_LAUNCHER_TABLE_H
#define CV_LAUNCHER_TABLE_H

#include "deploy/launcher/outcome.h"

/* A ranking as a table of classes, anything else as cv_pulls_print() has it; and what it cost. */
void cv_table_print(const struct cv_outcome *outcome, FILE *to);

#endif
