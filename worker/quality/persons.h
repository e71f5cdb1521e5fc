/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data set as the answers of persons: each of them is one worker, and its rows are all that it can say. Who they are
 * stays in the file; person i is worker first + i.
 */
#ifndef CV_QUALITY_PERSONS_H
#define CV_QUALITY_PERSONS_H

#include <stdint.h>

#include "common/base/err.h"

enum { CV_PERSONS_MAX = 1 << 28 };

/* In the order in which the file names them first; a person's rows in the file's order. All zero is valid and empty. */
struct cv_persons {
  uint32_t persons;
  uint64_t *start; /* persons + 1 of them: person p has the rows start[p] .. start[p + 1] - 1; owned */
  uint32_t *arm;   /* of each row; owned */
  uint32_t *value; /* of each row: its score, 0 .. CV_GRID; owned */
};

/* Room for so many persons and rows, all zero. CV_ERR_NOMEM, or CV_ERR_LIMIT for more rows than a count holds. */
CV_MUST_USE enum cv_err cv_persons_init(struct cv_persons *ret, uint32_t persons, uint64_t rows);
void cv_persons_fini(struct cv_persons *persons);

uint64_t cv_persons_rows(const struct cv_persons *persons, uint32_t person);
/* Rows of the person that has the most of them; and how many rows there are beyond the first `each` of every person. */
uint64_t cv_persons_most(const struct cv_persons *persons);
uint64_t cv_persons_beyond(const struct cv_persons *persons, uint64_t each);
/* The same data set in the same order has the same print, another one hardly ever (FNV-1a; no secret). */
uint64_t cv_persons_print(const struct cv_persons *persons);

#endif
