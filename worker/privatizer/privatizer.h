/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A privatizer turns one score into one token value at the worker, before the token leaves. Both are in grid units; a
 * token value may lie outside [0, CV_GRID]. The privatizer's law (common/base/local.h) states its guarantee and its
 * effect on means for the other parties. This folder draws from the law exactly: no probability is rounded.
 *
 * Each privatizer is one file here and one row of common/base/local.h, with its law.
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

/* Find a class by name, or by index; NULL if there is none. */
const struct cv_privatizer_class *cv_privatizer_find(const char *name);
const struct cv_privatizer_class *cv_privatizer_at(size_t index);

/* Makes the privatizer of a campaign's terms; the caller frees it. CV_ERR_NOT_FOUND, CV_ERR_INVALID or CV_ERR_NOMEM,
 * with the reason. */
CV_MUST_USE enum cv_err cv_privatizer_new(const struct cv_choice *choice, uint32_t arms, struct cv_privatizer **ret,
                                          struct cv_why *why);
void cv_privatizer_free(struct cv_privatizer *privatizer);

/* Returns the token value of a score in [0, CV_GRID]; `arm` is below the `arms` of cv_privatizer_new(). */
static inline int64_t cv_privatizer_apply(const struct cv_privatizer *privatizer, uint32_t arm, int64_t score,
                                          struct cv_rng *rng) {
  return privatizer->class->apply(privatizer, arm, score, rng);
}

#endif
