/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of an experiment's pieces, so that several machines can share the work: shard number `index` of `of` takes
 * every of-th piece. Piece p is replicate p % replicates of setting p / replicates, so each shard gets its part of
 * every setting. Shards of the same experiment and number of replicates are disjoint and together complete.
 */
#ifndef CV_LAB_SHARD_H
#define CV_LAB_SHARD_H

#include <stdint.h>

#include "common/base/err.h"

enum { CV_LAB_SHARDS_MAX = 100000 };

struct cv_lab_shard {
  uint64_t index, of; /* 1 <= index <= of <= CV_LAB_SHARDS_MAX */
};

/* Parses "I/N". CV_ERR_INVALID with one line for anything else. */
CV_MUST_USE enum cv_err cv_lab_shard_parse(const char *text, struct cv_lab_shard *ret, struct cv_why *why);
/* The shard's share of `pieces` pieces, numbered from 0; and the number of its i-th piece, i from 0. */
uint64_t cv_lab_shard_count(const struct cv_lab_shard *shard, uint64_t pieces);
uint64_t cv_lab_shard_piece(const struct cv_lab_shard *shard, uint64_t i);

#endif
