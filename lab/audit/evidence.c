/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/audit/evidence.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>

/* GSL's own inverse does not converge for every count. */
enum { HALVINGS = 200 };
static const double PRECISION = 1e-9;

/*
 * Brackets the probability at which a beta distribution's lower (or upper) tail is `error`. Callers use the end that is
 * on the safe side, so the bounds hold despite the limited precision.
 */
static void invert(double a, double b, double error, bool upper, double *ret_low, double *ret_high) {
  double low = 0, high = 1;
  for (int i = 0; i < HALVINGS && high - low > PRECISION * high; i++) {
    double middle = low + (high - low) / 2;
    bool beyond = upper ? gsl_cdf_beta_Q(middle, a, b) < error : gsl_cdf_beta_P(middle, a, b) > error;
    if (beyond) {
      high = middle;
    } else {
      low = middle;
    }
  }
  *ret_low = low;
  *ret_high = high;
}

double cv_audit_lower(uint64_t hits, uint64_t runs, double error) {
  double low = 0, high;
  if (hits > 0) {
    invert((double)hits, (double)(runs - hits) + 1, error, false, &low, &high);
  }
  return low;
}

double cv_audit_upper(uint64_t hits, uint64_t runs, double error) {
  double low, high = 1;
  if (hits < runs) {
    invert((double)hits + 1, (double)(runs - hits), error, true, &low, &high);
  }
  return high;
}

double cv_audit_certified(uint64_t hits_p, uint64_t hits_q, uint64_t runs, double delta, double error) {
  double p = cv_audit_lower(hits_p, runs, error / 2) - delta;
  return p <= 0 ? -(double)INFINITY : log(p / cv_audit_upper(hits_q, runs, error / 2));
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
