/* SPDX-License-Identifier: Apache-2.0 */
/* A normal score conditioned on lying in [0,1] (as in Zhao et al. 2020 and in Lu, Wang, Qiu and Zhang 2022). */
#include <math.h>

#include "worker/quality/models.h"

/* Up to this spread a normal proposal lies in [0,1] with probability of about one half or more, as the mean does;
 * above it a uniform proposal is accepted with probability 0.37 or more. */
static const double WIDE = 0.4;

static double draw_narrow(const struct cv_quality_item *item, struct cv_rng *rng) {
  double x;
  do {
    x = item->mean + item->spread * cv_rng_normal(rng);
  } while (x < 0 || x > 1);
  return x;
}

static double draw_wide(const struct cv_quality_item *item, struct cv_rng *rng) {
  for (;;) {
    double x = cv_rng_unit(rng);
    double z = (x - item->mean) / item->spread;
    if (cv_rng_unit(rng) < exp(-z * z / 2)) {
      return x;
    }
  }
}

static double draw(const struct cv_quality_item *item, struct cv_rng *rng) {
  return item->spread < WIDE ? draw_narrow(item, rng) : draw_wide(item, rng);
}

static double truth(const struct cv_quality_item *item) {
  if (item->spread == 0) {
    return item->mean;
  }
  struct cv_window window = cv_window_of(item);
  return item->mean + window.shift / window.inside;
}

const struct cv_quality_model cv_quality_truncated = {
    .name = "truncated-normal", .spread = "standard deviation", .spread_zero = true, .draw = draw, .truth = truth};
