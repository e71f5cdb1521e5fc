/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/judge/share.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

/* GSL's own inverse does not converge for every count, and then ends the program. */
enum { HALVINGS = 200 };
static const double PRECISION = 1e-12;

/* The limit is the largest share with P(at least `hits`) <= tail, a tail of a beta distribution; the end of the bracket
 * that is returned is on the safe side. */
double cv_lab_share_least(uint64_t hits, uint64_t runs, double tail) {
  double low = 0, high = 1;
  if (hits == 0) {
    return 0;
  }
  for (int i = 0; i < HALVINGS && high - low > PRECISION * high; i++) {
    double middle = low + (high - low) / 2;
    if (gsl_cdf_beta_P(middle, (double)hits, (double)(runs - hits) + 1) > tail) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return low;
}

double cv_lab_share_most(uint64_t hits, uint64_t runs, double tail) {
  double low = 0, high = 1;
  if (hits == runs) {
    return 1;
  }
  if (hits == 0) {
    return -expm1(log(tail) / (double)runs);
  }
  for (int i = 0; i < HALVINGS && high - low > PRECISION * high; i++) {
    double middle = low + (high - low) / 2;
    if (gsl_cdf_beta_Q(middle, (double)hits + 1, (double)(runs - hits)) < tail) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return high;
}
