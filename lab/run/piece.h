/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a piece of work. */
#ifndef CV_LAB_PIECE_H
#define CV_LAB_PIECE_H

#include "lab/run/measure.h"

/* The seed of a replicate: independent of setting, shard and number of replicates. */
uint64_t cv_lab_replicate_seed(uint64_t seed, uint64_t replicate);
/* Runs all series of a piece. Sets cv_lab_piece_values() values, in the order of cv_lab_dataset_put(). One line. */
CV_MUST_USE enum cv_err cv_lab_piece_run(const struct cv_lab_piece *piece, double *ret_values, struct cv_why *why);

#endif
