/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A privatizer: one score in, one token value out, at the worker, before anything leaves it. Both are in grid units; a
 * token value may lie outside [0, CV_GRID] if the privatizer says so.
 *
 * Each privatizer is one file and one row of the table.
 */
#ifndef CV_WORKER_PRIVATIZER_H
#define CV_WORKER_PRIVATIZER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/rng.h"
#include "common/base/spec.h"

/* No local guarantee: the broker is trusted with the score. */
#define CV_EPSILON_NONE UINT64_MAX

struct cv_privatizer;

struct cv_privatizer_class {
  const char *name;
  const char *guarantee; /* one line for documents and messages */
  size_t size;           /* bytes of the object, which starts with struct cv_privatizer */
  const struct cv_param_rule *rules;
  size_t rule_count;
  /* Fills in what depends on the (checked) parameters, epsilon_micro and the range too; NULL if there is nothing. */
  enum cv_err (*prepare)(struct cv_privatizer *self, const struct cv_params *params, uint32_t arms, struct cv_why *why);
  int64_t (*apply)(const struct cv_privatizer *self, uint32_t arm, int64_t score, struct cv_rng *rng);
};

/* The head of every privatizer object; immutable once made. */
struct cv_privatizer {
  const struct cv_privatizer_class *class;
  uint64_t epsilon_micro; /* local epsilon of one token, the largest over the arms; or CV_EPSILON_NONE */
  int64_t low, high;      /* range of token values, both included */
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
