/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/audit/evidence.h"

#include <math.h>

#include "lab/judge/share.h"

double cv_audit_certified(uint64_t hits_p, uint64_t hits_q, uint64_t runs, double delta, double error) {
  double p = cv_lab_share_least(hits_p, runs, error / 2) - delta;
  return p <= 0 ? -(double)INFINITY : log(p / cv_lab_share_most(hits_q, runs, error / 2));
}

/* One end of Wilson's interval; the lower end for z < 0. */
static double wilson(uint64_t hits, uint64_t runs, double z) {
  double n = (double)runs, p = (double)hits / n, squared = z * z / n;
  return (p + squared / 2 + z * sqrt(p * (1 - p) / n + squared / (4 * n))) / (1 + squared);
}

double cv_audit_estimate(uint64_t hits_p, uint64_t hits_q, uint64_t runs, double delta, double z) {
  double p = wilson(hits_p, runs, -z) - delta;
  return p <= 0 ? -(double)INFINITY : log(p / wilson(hits_q, runs, z));
}
