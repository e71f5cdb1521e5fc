/* SPDX-License-Identifier: Apache-2.0 */
/* A data set as scores: the rows of each arm, in grid units; and a pseudorandom permutation with random access. */
#ifndef CV_QUALITY_ROWS_H
#define CV_QUALITY_ROWS_H

#include <stdint.h>

/* The rows of arm a are value[start[a]] .. value[start[a + 1] - 1]. All zero is valid and empty. */
struct cv_rows {
  uint32_t arms;
  uint64_t *start; /* arms + 1 of them, owned */
  uint32_t *value; /* 0 .. CV_GRID, owned */
};

void cv_rows_fini(struct cv_rows *rows);
/* Keeps the rows of part `part` of `parts`, from 1: of each arm every parts-th one, from its part-th on. */
void cv_rows_part(struct cv_rows *rows, uint32_t part, uint32_t parts);
/* The exact mean of an arm's rows, in [0,1]; NAN if it has none. */
double cv_rows_mean(const struct cv_rows *rows, uint32_t arm);

/*
 * A keyed bijection of [0, n), 0 < n <= 2^62: a Feistel network (Luby and Rackoff 1988) of six rounds on the next even
 * number of bits, repeated until the image is in the range (Black and Rogaway 2002): less than four steps on average.
 * `index` < n. For shuffling simulated data, not for secrecy.
 */
uint64_t cv_permute(uint64_t key, uint64_t n, uint64_t index);

#endif
