/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data set split by person: each person is one worker that answers only with its own rows. The names of the persons
 * stay in the file; person i is worker first + i.
 */
#ifndef CV_QUALITY_PERSONS_H
#define CV_QUALITY_PERSONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum { CV_PERSONS_MAX = 1 << 28 };

/* Each person's rows in the file's order. All zero is valid and empty. */
struct cv_persons {
  uint32_t persons;
  uint64_t *start; /* persons + 1 of them: person p has the rows start[p] .. start[p + 1] - 1; owned */
  uint32_t *arm;   /* of each row; owned */
  uint32_t *value; /* of each row: its score, 0 .. CV_GRID; owned */
};

/* Allocates zeroed arrays; the caller frees them with cv_persons_fini(). CV_ERR_NOMEM, or CV_ERR_LIMIT for 2^32 - 1 or
 * more rows. */
CV_MUST_USE enum cv_err cv_persons_init(struct cv_persons *ret, uint32_t persons, uint64_t rows);
void cv_persons_fini(struct cv_persons *persons);

uint64_t cv_persons_rows(const struct cv_persons *persons, uint32_t person);
/* How many rows a person gives at most, of those with rows of `arms` arms, if each gives at most `each`, and with
 * `is_once` one of an arm; and how many rows are not given then. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_persons_give(const struct cv_persons *persons, uint32_t arms, uint64_t each, bool is_once,
                                        uint64_t *ret_most, uint64_t *ret_beyond);

#endif
