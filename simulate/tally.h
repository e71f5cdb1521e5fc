/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distinct scores of the rows of a data set, of each arm that has few of them, such as stars. The sum of many rows
 * drawn with replacement is then drawn value by value: a multinomial variable, as a chain of binomial ones.
 */
#ifndef CV_SIMULATE_TALLY_H
#define CV_SIMULATE_TALLY_H

#include "simulate/sampler/sampler.h"
#include "worker/quality/quality.h"

/* More distinct values than this are as fast one by one. */
enum { CV_TALLY_VALUES = 64 };

struct cv_tally_value {
  uint32_t value; /* grid units */
  double chance;  /* among this value and those after it */
};

/* All zero is valid and has no arm. */
struct cv_tally {
  uint32_t arms;
  uint64_t *start;              /* arms + 1 of them: arm a has the values start[a] .. start[a + 1] - 1; owned */
  struct cv_tally_value *value; /* owned */
};

/* Of a source with rows drawn with replacement; of any other source it is empty. CV_ERR_NOMEM with one line. */
CV_MUST_USE enum cv_err cv_tally_init(const struct cv_quality *quality, struct cv_tally *ret, struct cv_why *why);
void cv_tally_fini(struct cv_tally *tally);

static inline bool cv_tally_has(const struct cv_tally *tally, uint32_t arm) {
  return arm < tally->arms && tally->start[arm] < tally->start[arm + 1];
}
/* Draws the sum of `count` rows of an arm that the tally has, in grid units. */
int64_t cv_tally_sum(const struct cv_tally *tally, uint32_t arm, uint64_t count, struct cv_rng *rng);

#endif
