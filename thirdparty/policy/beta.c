/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/beta.h"

#include <math.h>

#include "common/base/err.h"

double cv_draw_gamma(struct cv_rng *rng, double shape) {
  CV_REQUIRE(shape >= 1);
  double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (;;) {
    double x = cv_rng_normal(rng), v = 1 + c * x;
    v = v * v * v;
    /* log(0) is no matter: it accepts, and has probability 2^-53. */
    if (v > 0 && log(cv_rng_unit(rng)) < x * x / 2 + d - d * v + d * log(v)) {
      return d * v;
    }
  }
}

double cv_draw_beta(struct cv_rng *rng, double a, double b) {
  double x = cv_draw_gamma(rng, a), y = cv_draw_gamma(rng, b);
  return x / (x + y);
}
