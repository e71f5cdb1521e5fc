/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database with cells changed: one that was stored once is the template, and each input edits a copy (table, column,
 * row, kind of value, value: 5 bytes or more an edit) as somebody with sqlite3 could.
 */
#ifndef CV_FUZZ_CELLS_H
#define CV_FUZZ_CELLS_H

#include "tests/fuzz/fuzz.h"

/* Where the template is to be made, and where its edited copies are: removed with what SQLite leaves beside it when the
 * program ends. The first call of all. */
const char *cells_path(void);
/* Takes what was made as the template. */
void cells_keep(void);
/* Puts an edited copy in its place. */
void cells_write(struct cv_reader *in);

#endif
