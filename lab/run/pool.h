/* SPDX-License-Identifier: Apache-2.0 */
/* Runs independent pieces of work in threads, with progress. */
#ifndef CV_LAB_POOL_H
#define CV_LAB_POOL_H

#include <stddef.h>
#include <stdio.h>

#include "common/base/err.h"

/* Runs piece number `at`. Called from several threads at once. */
typedef enum cv_err cv_lab_piece_fn(void *data, size_t at);

/*
 * Runs all pieces, each once, in any order; after an error no further piece starts, and the first error is returned.
 * `jobs` is at least 1. `progress` (NULL: none) receives the number of completed pieces, the rate and the time left: a
 * terminal as one line that is overwritten, any other file as a line every ten seconds and one at the end.
 */
CV_MUST_USE enum cv_err cv_lab_pool(size_t pieces, unsigned jobs, FILE *progress, cv_lab_piece_fn *piece, void *data);

/* Seconds of a clock that only goes forward. */
double cv_lab_seconds(void);
/* Processor seconds of this thread: the cost of a computation, whatever else runs on the machine. */
double cv_lab_processor_seconds(void);
/* The default number of threads: one per processor. */
unsigned cv_lab_processors(void);

#endif
