/* SPDX-License-Identifier: Apache-2.0 */
/* Beta(a, b) with a = mean x concentration, b = (1 - mean) x concentration, as a ratio of two gamma variables. */
#include <math.h>

#include "worker/quality/models.h"

/*
 * The logarithm of a gamma variable (Marsaglia and Tsang 2000). For a shape below 1 the code draws with shape + 1 and
 * multiplies by a power of a uniform, in logarithms, since the power underflows for small shapes.
 */
static double log_gamma_draw(double shape, struct cv_rng *rng) {
  double boost = 0;
  if (shape < 1) {
    boost = log(1 - cv_rng_unit(rng)) / shape;
    shape += 1;
  }
  double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (;;) {
    double x = cv_rng_normal(rng);
    double v = 1 + c * x;
    if (v <= 0) {
      continue;
    }
    v = v * v * v;
    double u = 1 - cv_rng_unit(rng);
    /* The first comparison implies the second and mostly avoids its logarithms. */
    if (u < 1 - 0.0331 * x * x * x * x || log(u) < 0.5 * x * x + d - d * v + d * log(v)) {
      return log(d * v) + boost;
    }
  }
}

static double draw(const struct cv_quality_item *item, struct cv_rng *rng) {
  if (item->mean <= 0 || item->mean >= 1) {
    return item->mean;
  }
  double a = log_gamma_draw(item->mean * item->spread, rng);
  double b = log_gamma_draw((1 - item->mean) * item->spread, rng);
  return 1 / (1 + exp(b - a));
}

static double truth(const struct cv_quality_item *item) {
  return item->mean;
}

const struct cv_quality_model cv_quality_beta = {
    .name = "beta", .spread = "concentration", .draw = draw, .truth = truth};
