/* SPDX-License-Identifier: Apache-2.0 */
/* The true ranking of known means at rank span alpha (Chen et al., PPAR, 2022), the reference for a campaign's
 * result. */
#ifndef CV_QUALITY_TRUTH_H
#define CV_QUALITY_TRUTH_H

#include <stdint.h>

/* Rounding allowance: 0.7 must count as within 0.1 of 0.8. */
#define CV_TRUTH_SLACK 1e-12

/*
 * Repeatedly takes the best unranked arm and puts all arms within alpha of it (both ends included, up to the slack)
 * into its class. ret_class[i] is the class of arm i, from 1 = best. Returns the number of classes.
 */
uint32_t cv_truth_classes(const double *mean, uint32_t arms, double alpha, uint32_t *ret_class);

#endif
