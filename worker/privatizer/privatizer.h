/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A privatizer: one score in, one token value out, at the worker, before anything leaves it. Both are in grid units; a
 * token value may lie outside [0, CV_GRID]. What it promises, and what everybody else has to know of it, is its law
 * (common/base/local.h); here it is drawn, exactly: no probability is rounded.
 *
 * Each privatizer is one file and one row of the table.
 */
#ifndef CV_WORKER_PRIVATIZER_H
#define CV_WORKER_PRIVATIZER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/local.h"
#include "common/base/rng.h"
#include "common/noise/dlaplace.h"

struct cv_privatizer;

struct cv_privatizer_class {
  enum cv_local_kind kind;
  const char *guarantee; /* one line for documents and messages */
  int64_t (*apply)(const struct cv_privatizer *self, uint32_t arm, int64_t score, struct cv_rng *rng);
};

/* Immutable once made. */
struct cv_privatizer {
  const struct cv_privatizer_class *class;
  struct cv_local law;
  struct cv_dlaplace noise; /* of scale CV_GRID/epsilon; if the law has an epsilon */
};

/* By name, NULL if there is none; and by index, NULL past the end. */
const struct cv_privatizer_class *cv_privatizer_find(const char *name);
const struct cv_privatizer_class *cv_privatizer_at(size_t index);

/* What a campaign's terms ask for. CV_ERR_NOT_FOUND or CV_ERR_INVALID with the reason. */
CV_MUST_USE enum cv_err cv_privatizer_new(const struct cv_choice *choice, uint32_t arms, struct cv_privatizer **ret,
                                          struct cv_why *why);
void cv_privatizer_free(struct cv_privatizer *privatizer);

/* One score in [0, CV_GRID] into one token value; arm below the arms it was made for. */
static inline int64_t cv_privatizer_apply(const struct cv_privatizer *privatizer, uint32_t arm, int64_t score,
                                          struct cv_rng *rng) {
  return privatizer->class->apply(privatizer, arm, score, rng);
}

#endif
