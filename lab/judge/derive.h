/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims about values that are calculated from those of the experiment, replicate by replicate:
 *
 *   average  the averages of the claim's two sides over all its comparisons, or for a trend over its series. What is
 *            claimed of a curve on the whole is one comparison then.
 *   minus    the differences of the two sides to a series each
 *
 * A replicate without one of the values has no average.
 */
#ifndef CV_LAB_DERIVE_H
#define CV_LAB_DERIVE_H

#include "lab/judge/terms.h"
#include "lab/result/dataset.h"

/* Room for a name such as "dpu, epsilon 0.2 minus opt, epsilon 0.2". */
enum { CV_LAB_DERIVED_NAME = 2 * CV_LAB_NAME + 8 };

struct cv_lab_derived {
  struct cv_lab_terms terms;     /* about the derived values: the first pair, and one point unless a trend */
  struct cv_lab_dataset dataset; /* has the derived values in place of that pair's; the others are missing */
  char one[CV_LAB_DERIVED_NAME], other[CV_LAB_DERIVED_NAME]; /* what the sides are called */
  size_t comparisons;                                        /* that were averaged; 0: none were */
};

/* True if the claim is about derived values. */
bool cv_lab_is_derived(const struct cv_lab_terms *terms);
/* Calculates them. The caller frees the result with cv_lab_derived_fini(). CV_ERR_NOMEM, with nothing to free. */
CV_MUST_USE enum cv_err cv_lab_derive(const struct cv_lab_dataset *dataset, const struct cv_lab_terms *terms,
                                      struct cv_lab_derived *ret);
void cv_lab_derived_fini(struct cv_lab_derived *derived);

#endif
