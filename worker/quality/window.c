/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "worker/quality/models.h"

static double density(double x) {
  return exp(-x * x / 2) / sqrt(2 * M_PI);
}

struct cv_window cv_window_of(const struct cv_quality_item *item) {
  double a = -item->mean / item->spread, b = (1 - item->mean) / item->spread;
  /* a <= 0 <= b, so the two halves of `inside` add without cancellation. */
  struct cv_window window = {
      .below = erfc(-a / M_SQRT2) / 2,
      .inside = (erf(b / M_SQRT2) + erf(-a / M_SQRT2)) / 2,
      .above = erfc(b / M_SQRT2) / 2,
  };
  /* The difference of densities as the larger one times 1 - e^(-difference of exponents): for a large spread both are
   * nearly equal, and plain subtraction would cancel. */
  double exponent = (b - a) * (b + a) / 2;
  window.shift = item->spread * (exponent >= 0 ? -density(a) * expm1(-exponent) : density(b) * expm1(exponent));
  return window;
}
