/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact limits of a share: one-sided limits of a probability after `hits` of `runs` (Clopper and Pearson, "The Use of
 * Confidence or Fiducial Limits Illustrated in the Case of the Binomial", 1934). Each is wrong with probability at most
 * `tail`. 0 <= hits <= runs, runs > 0, 0 < tail < 1.
 */
#ifndef CV_LAB_SHARE_H
#define CV_LAB_SHARE_H

#include <stdint.h>

double cv_lab_share_least(uint64_t hits, uint64_t runs, double tail);
/* Without hits: 1 - tail^(1/runs). */
double cv_lab_share_most(uint64_t hits, uint64_t runs, double tail);

#endif
