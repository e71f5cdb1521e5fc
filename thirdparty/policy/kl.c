/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/kl.h"

#include <math.h>

#include "common/base/err.h"

/* x ln(x/y). */
static double part(double x, double y) {
  return x == 0 ? 0 : x * log(x / y);
}

double cv_kl(double p, double q) {
  return fmax(0, part(p, q) + part(1 - p, 1 - q));
}

double cv_kl_upper(double p, double bound) {
  CV_REQUIRE(p >= 0 && p <= 1 && bound >= 0);
  if (p == 1 || bound == 0) {
    return p;
  }
  if (p == 0) {
    return -expm1(-bound);
  }
  double rest = 1 - p;
  double q = fmin(p + sqrt(bound / 2), 1 - rest * exp((p * log(p) - bound) / rest));
  for (int i = 0; i < 64 && q < 1 && q > p; i++) {
    double away = q - p;
    /* Compute the logarithms of d from q - p, which is exact near p; near q = 1 the plain logarithm is exact. */
    double less = away < rest / 2 ? log1p(-away / rest) : log((1 - q) / rest);
    double excess = -p * log1p(away / p) - rest * less - bound;
    double step = excess * q * (1 - q) / away;
    if (!(step > 1e-15)) {
      break;
    }
    q -= step;
  }
  return fmin(1, fmax(p, q));
}

double cv_kl_lower(double p, double bound) {
  return 1 - cv_kl_upper(1 - p, bound);
}
