/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database with changed cells. A database that was stored once is the template; each input edits a copy of it (table,
 * column, row, kind of value, value: 5 bytes or more for each edit), as a person with sqlite3 could.
 */
#ifndef CV_FUZZ_CELLS_H
#define CV_FUZZ_CELLS_H

#include "tests/fuzz/fuzz.h"

/* The path where the template is to be made, and where its edited copies are; the file is removed, with SQLite's files
 * beside it, when the program ends. Call first. */
const char *cells_path(void);
/* Takes the file at the path as the template. */
void cells_keep(void);
/* Replaces the file at the path by an edited copy. */
void cells_write(struct cv_reader *in);

#endif
