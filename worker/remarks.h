/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to data.c: what a person should know about a data file before it is used. */
#ifndef CV_WORKER_REMARKS_H
#define CV_WORKER_REMARKS_H

#include "worker/data.h"
#include "worker/tally.h"

/* Writes the lines about a tally whose items have been chosen; `persons` is the number of persons that stay. */
void cv_remarks_make(const struct cv_tally *tally, uint32_t persons, struct cv_data_notes *ret);
/* Asks for a declared scale, and offers the range that was seen. CV_ERR_INVALID with one line. */
CV_MUST_USE enum cv_err cv_remarks_ask_scale(const struct cv_tally *tally, struct cv_why *why);

/* One line for each of the first names that were typed in several ways, and one for the others. */
struct cv_remarks_spellings {
  struct cv_data_notes *notes;
  const char *file, *place, *kind; /* the path, "line" or "row", "item" or "person" */
  uint32_t count;                  /* 0 at first */
};
void cv_remarks_spelling(struct cv_remarks_spellings *spellings, const char *name, const struct cv_spelling *spelling);
void cv_remarks_spellings_end(const struct cv_remarks_spellings *spellings);

/* A number as text that reads as the same number again, and as short as possible. */
struct cv_remarks_number {
  char text[32];
};
struct cv_remarks_number cv_remarks_number(double number);

#endif
