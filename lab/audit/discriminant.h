/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fisher's linear discriminant of two samples: the weights w = S^-1 (m1 - m0) under which the means m0, m1 of the
 * weighted sums lie farthest apart in standard deviations; S is the covariance within the samples. If a weighted sum is
 * constant within each sample but differs between the two, the discriminant is that sum.
 */
#ifndef CV_LAB_AUDIT_DISCRIMINANT_H
#define CV_LAB_AUDIT_DISCRIMINANT_H

#include <stdint.h>

#include "common/base/err.h"

/*
 * Uses the first n <= width numbers of each row; a sample has `runs` rows of `width` numbers. Sets n weights: the one
 * of largest size is 1 or -1, negligible ones are 0, and weights close to multiples of 1/12 are these multiples
 * exactly. All are 0 if the means are equal. CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_audit_discriminant(const int64_t *const rows[2], uint32_t width, uint64_t runs, uint32_t n,
                                              double *ret_weight);

#endif
