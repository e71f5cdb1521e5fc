/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fisher's linear discriminant of two samples: the weights w = S^-1 (m1 - m0) under which the means m0, m1 of the
 * weighted sums lie farthest apart in standard deviations, S being the covariance within the samples. Where a weighted
 * sum does not vary at all within a sample, but differs between the two, it is that sum.
 */
#ifndef CV_LAB_AUDIT_DISCRIMINANT_H
#define CV_LAB_AUDIT_DISCRIMINANT_H

#include <stdint.h>

#include "common/base/err.h"

/*
 * Of the first n numbers of rows of `width`, `runs` rows a sample; n <= width. The weight of largest size is 1 or -1,
 * those that do next to nothing are 0, and weights that are small fractions are so exactly; all are 0 if the means are
 * equal.
 */
CV_MUST_USE enum cv_err cv_audit_discriminant(const int64_t *const rows[2], uint32_t width, uint64_t runs, uint32_t n,
                                              double *ret_weight);

#endif
