/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distinct scores of the rows of a data set, of each arm that has few of them, such as stars. The sum of many rows
 * drawn with replacement is then drawn value by value: a multinomial variable, as a chain of binomial ones.
 */
#ifndef CV_SIMULATE_STRATA_H
#define CV_SIMULATE_STRATA_H

#include "simulate/sampler/sampler.h"
#include "worker/quality/quality.h"

/* More distinct values than this are as fast one by one. */
enum { CV_STRATA_MAX = 64 };

struct cv_stratum {
  uint32_t value; /* grid units */
  double chance;  /* among this value and those after it */
};

/* All zero is valid and has no arm. */
struct cv_strata {
  uint32_t arms;
  uint64_t *start;          /* arms + 1 of them: arm a has the values start[a] .. start[a + 1] - 1; owned */
  struct cv_stratum *value; /* owned */
};

/* Of a source with rows drawn with replacement; of any other source it is empty. CV_ERR_NOMEM with one line. */
CV_MUST_USE enum cv_err cv_strata_init(const struct cv_quality *quality, struct cv_strata *ret, struct cv_why *why);
void cv_strata_fini(struct cv_strata *strata);

static inline bool cv_strata_has(const struct cv_strata *strata, uint32_t arm) {
  return arm < strata->arms && strata->start[arm] < strata->start[arm + 1];
}
/* Draws the sum of `count` rows of an arm that has strata, in grid units. */
int64_t cv_strata_sum(const struct cv_strata *strata, uint32_t arm, uint64_t count, struct cv_rng *rng);

#endif
