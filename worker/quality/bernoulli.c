/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/models.h"

static double draw(const struct cv_quality_item *item, struct cv_rng *rng) {
  return cv_rng_unit(rng) < item->mean ? 1 : 0;
}

static double truth(const struct cv_quality_item *item) {
  return item->mean;
}

const struct cv_quality_model cv_quality_bernoulli = {.name = "bernoulli", .draw = draw, .truth = truth};
