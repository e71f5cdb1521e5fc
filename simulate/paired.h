/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pairs of runs say about a change of a setting: the ratio or the difference of the medians, with an interval at
 * CV_PAIRED_LEVEL: the percentile bootstrap over the pairs (Efron and Tibshirani, "An Introduction to the Bootstrap",
 * 1993, section 13.3), which draws runs with replacement, both of a pair together.
 */
#ifndef CV_SIMULATE_PAIRED_H
#define CV_SIMULATE_PAIRED_H

#include "simulate/forecast.h"

#define CV_PAIRED_LEVEL .99
enum { CV_PAIRED_LEAST = 8 }; /* pairs; the interval of fewer would mean nothing */

/* Of n pairs: median(other) / median(own), 1 if both are 0. All NAN with fewer than CV_PAIRED_LEAST pairs, or when out
 * of memory. */
struct cv_range cv_paired_ratio(const double *own, const double *other, uint32_t n);
/* median(other) - median(own), likewise. */
struct cv_range cv_paired_change(const double *own, const double *other, uint32_t n);

#endif
