/* SPDX-License-Identifier: Apache-2.0 */
/* The exact law of a sum of a few Laplace variables of one scale, and what of a release's noise has it. */
#ifndef CV_THIRDPARTY_LAPLACES_H
#define CV_THIRDPARTY_LAPLACES_H

#include "common/base/result.h"

enum { CV_LAPLACES_MAX = 32 };

/* Of N, the sum of k Laplace variables of scale 1. */
struct cv_laplaces_at {
  double log_tail; /* ln P(N >= y) */
  double hazard;   /* -d/dy of that: above 0, at most 1, increasing, since N has a log-concave density */
};
/* 1 <= k <= CV_LAPLACES_MAX, any y whose k-th power is finite. O(k). */
struct cv_laplaces_at cv_laplaces_at(double y, uint32_t k);

/* A noise in two independent parts: `alike` noises of the largest scale, and the rest. */
struct cv_laplaces_split {
  uint32_t alike;
  double scale;
  struct cv_noise rest;
};
/* At most `most` noises alike; none if there is no noise. */
void cv_laplaces_split(const struct cv_noise *noise, uint32_t most, struct cv_laplaces_split *ret);

/* -ln of the product of 1 - x^2 b^2 over the noises, b their scales times `unit`: no less than the logarithmic moment
 * generating function of their sum at x, also for discrete noise. Infinite where a noise has none. */
double cv_laplaces_moment(const struct cv_noise *noise, double unit, double x);

#endif
