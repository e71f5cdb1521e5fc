/* SPDX-License-Identifier: Apache-2.0 */
/* How well a ranking agrees with the truth. */
#ifndef CV_CAMPAIGN_ACCURACY_H
#define CV_CAMPAIGN_ACCURACY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/result.h"

/* The number of possible classes: ceil(1/alpha), or one per arm if alpha is 0. */
uint32_t cv_accuracy_classes(uint32_t arms, double alpha);

/*
 * Accuracy of a class (Chen et al., "PPAR", 2022, section VI): |U and V|/|U| with U the true items and V those found; 1
 * if both are empty, 0 if only U is. Sets whether U or V has an item.
 */
double cv_accuracy_of_class(const uint32_t *truth, const struct cv_standing *standing, uint32_t arms,
                            uint32_t rank_class, bool *ret_is_filled);

/* The average over the possible classes, over those where U or V is not empty, and the least of any class. */
struct cv_accuracy {
  uint32_t classes, filled;
  double all, of_filled, least;
};
/* Undecided and parked arms are in no class that was found. */
struct cv_accuracy cv_accuracy(const uint32_t *truth, const struct cv_standing *standing, uint32_t arms, double alpha);

#endif
