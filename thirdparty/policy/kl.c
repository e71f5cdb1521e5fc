/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/kl.h"

#include <math.h>

#include "common/base/err.h"

/* x ln(x/y). */
static double part(double x, double y) {
  return x == 0 ? 0 : x * log(x / y);
}

double cv_kl(double p, double q) {
  double rest = 1 - p, away = q - p;
  /* Near p the two parts cancel down to the square of their size: by the difference, which is exact there. */
  if (fabs(away) < fmin(p, rest) / 2) {
    return fmax(0, -p * log1p(away / p) - rest * log1p(-away / rest));
  }
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

/* The branch p >= q. */
static double private_above(double p, double q, double epsilon) {
  double lost = (1 - q) * expm1(-epsilon); /* 1 + lost = (1 + q(e^epsilon - 1)) / e^epsilon */
  if (p * (1 + lost) <= q) {
    return cv_kl(p, q);
  }
  return epsilon * (p - 1) - log1p(lost);
}

double cv_kl_private(double p, double q, double epsilon) {
  CV_REQUIRE(q >= 0 && q <= 1 && epsilon > 0);
  if (p == q) {
    return 0;
  }
  if (isinf(epsilon)) {
    return p >= 0 && p <= 1 ? cv_kl(p, q) : (double)INFINITY;
  }
  return p > q ? private_above(p, q, epsilon) : private_above(1 - p, 1 - q, epsilon);
}
