/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/beta.h"

#include <math.h>

#include "common/base/err.h"

double cv_draw_gamma(struct cv_rng *rng, double shape) {
  CV_REQUIRE(shape >= 1);
  double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (;;) {
    double x = cv_rng_normal(rng), v = 1 + c * x;
    if (v <= 0) {
      continue;
    }
    v = v * v * v;
    double u = cv_rng_unit(rng);
    /* The first comparison implies the second and mostly avoids its logarithms. u = 0, of probability 2^-53,
     * accepts. */
    if (u < 1 - 0.0331 * x * x * x * x || log(u) < x * x / 2 + d - d * v + d * log(v)) {
      return d * v;
    }
  }
}

double cv_draw_beta(struct cv_rng *rng, double a, double b) {
  double x = cv_draw_gamma(rng, a), y = cv_draw_gamma(rng, b);
  return x / (x + y);
}
