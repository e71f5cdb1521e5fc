/* SPDX-License-Identifier: Apache-2.0 */
/* The true ranking of known means at rank span alpha (Chen et al., PPAR, 2022), the reference for a campaign's
 * result. */
#ifndef CV_QUALITY_TRUTH_H
#define CV_QUALITY_TRUTH_H

#include <stdint.h>

#include "common/base/result.h"

/* Rounding allowance: 0.7 must count as within 0.1 of 0.8. */
#define CV_TRUTH_SLACK 1e-12

/*
 * Repeatedly takes the best unranked arm and puts all arms within alpha of it (both ends included, up to the slack)
 * into its class. ret_class[i] is the class of arm i, from 1 = best. Returns the number of classes.
 */
uint32_t cv_truth_classes(const double *mean, uint32_t arms, double alpha, uint32_t *ret_class);

/*
 * The same for a ranking with parked arms, as far as it can be right (docs/beyond.md): an arm parked in class l is not
 * ranked again below l, so that it opens no class there; one that is used up does not count for class l either. Each
 * parked arm gets the first class from l on whose best it is within alpha of; one class more than there are if none.
 */
uint32_t cv_truth_classes_parked(const double *mean, uint32_t arms, double alpha, const struct cv_standing *standing,
                                 uint32_t *ret_class);

#endif
