/* SPDX-License-Identifier: Apache-2.0 */
/* Independent pieces of work over threads, with progress. */
#ifndef CV_LAB_POOL_H
#define CV_LAB_POOL_H

#include <stddef.h>
#include <stdio.h>

#include "common/base/err.h"

/* One piece, `at` below the count. Called from several threads at once. */
typedef enum cv_err cv_lab_piece_fn(void *data, size_t at);

/*
 * Does all pieces, each once, in any order; after an error no new one is begun, and the first error is returned. `jobs`
 * is at least 1. `progress` (NULL: none) is told how many are done, how fast it goes and how long it will take: a
 * terminal in one line that is written over, anything else in a line every ten seconds and one at the end.
 */
CV_MUST_USE enum cv_err cv_lab_pool(size_t pieces, unsigned jobs, FILE *progress, cv_lab_piece_fn *piece, void *data);

/* Seconds of a clock that only goes forward. */
double cv_lab_seconds(void);
/* Of processor time that this thread has had: what a calculation costs, however busy the machine is. */
double cv_lab_processor_seconds(void);
/* How many threads to take when nobody says. */
unsigned cv_lab_processors(void);

#endif
