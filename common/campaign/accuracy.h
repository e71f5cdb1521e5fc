/* SPDX-License-Identifier: Apache-2.0 */
/* How well a ranking agrees with the truth. */
#ifndef CV_CAMPAIGN_ACCURACY_H
#define CV_CAMPAIGN_ACCURACY_H

#include <stdint.h>

#include "common/base/result.h"

/*
 * Accuracy of paper 000: |U and V|/|U| of a class (U true items, V found items; 1 if both are empty, 0 if only U is),
 * averaged over the ceil(1/alpha) possible classes (one per arm if alpha is 0), and over those where U or V is not
 * empty.
 */
struct cv_accuracy {
  uint32_t classes, filled;
  double all, of_filled;
};
struct cv_accuracy cv_accuracy(const uint32_t *truth, const struct cv_standing *standing, uint32_t arms, double alpha);

#endif
