/* SPDX-License-Identifier: Apache-2.0 */
/* A normal score clipped to [0,1]: values outside become 0 or 1. */
#include <math.h>

#include "worker/quality/models.h"

static double draw(const struct cv_quality_item *item, struct cv_rng *rng) {
  return fmin(1, fmax(0, item->mean + item->spread * cv_rng_normal(rng)));
}

static double truth(const struct cv_quality_item *item) {
  if (item->spread == 0) {
    return item->mean;
  }
  struct cv_window window = cv_window_of(item);
  return item->mean * window.inside + window.shift + window.above;
}

const struct cv_quality_model cv_quality_clipped = {
    .name = "clipped-normal", .spread = "standard deviation", .spread_zero = true, .draw = draw, .truth = truth};
