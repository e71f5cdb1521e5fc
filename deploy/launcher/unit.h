/* SPDX-License-Identifier: Apache-2.0 */
/* Scores in the unit of a data file, such as 1 to 5 stars, beside those of the campaign, which are from 0 to 1. */
#ifndef CV_LAUNCHER_UNIT_H
#define CV_LAUNCHER_UNIT_H

#include <jansson.h>
#include <stdio.h>

#include "common/base/result.h"
#include "prepare/prepare.h"

struct cv_unit {
  const char *name; /* the column of the scores, borrowed from the campaign file; NULL: there is no unit of its own */
  struct cv_scale scale;
};

/* The unit of a campaign; none without a file (NULL), without a declared scale, and with one from 0 to 1. */
struct cv_unit cv_unit_of(const struct cv_prepared *file);

/* Prints a column of a table, two blanks before it; nothing without a unit. A mean without tokens is "-". */
void cv_unit_print_heading(const struct cv_unit *unit, FILE *to);
void cv_unit_print_cell(const struct cv_unit *unit, const struct cv_standing *standing, FILE *to);

/*
 * {score: the column's name, low, high, items: {NAME: {mean, radius} or null}}; JSON null without a unit. NULL when out
 * of memory. The caller owns the object.
 */
json_t *cv_unit_json(const struct cv_unit *unit, const char *const *name, const struct cv_standing *standing,
                     uint32_t arms);

/* Prints what the reader of the data file decided or left out, one line each; nothing without a data file. */
void cv_unit_print_notes(const struct cv_prepared *file, FILE *to);
/* The same as a list of texts. NULL when out of memory. The caller owns it. */
json_t *cv_unit_notes_json(const struct cv_prepared *file);

#endif
