/* SPDX-License-Identifier: Apache-2.0 */
/* Running a piece of work. */
#ifndef CV_LAB_PIECE_H
#define CV_LAB_PIECE_H

#include "lab/run/measure.h"

/* The seed of a replicate. */
uint64_t cv_lab_replicate_seed(uint64_t seed, uint64_t replicate);
/* All series of a piece: cv_lab_piece_values() numbers, as cv_lab_dataset_put() takes them. */
CV_MUST_USE enum cv_err cv_lab_piece_run(const struct cv_lab_piece *piece, double *ret_values, struct cv_why *why);

#endif
