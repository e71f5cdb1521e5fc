/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/coins.h"
#include "worker/quality/models.h"

static double draw(const struct cv_quality_item *item, struct cv_rng *rng) {
  return cv_rng_unit(rng) < item->mean ? 1 : 0;
}

static void fill(const struct cv_quality_item *item, uint64_t path, uint64_t first, size_t count, int32_t *ret_score) {
  const struct cv_coins coins = {.path = path, .first = first, .count = count, .low = item->mean};
  cv_coins_fill(&coins, ret_score);
}

static double truth(const struct cv_quality_item *item) {
  return item->mean;
}

const struct cv_quality_model cv_quality_bernoulli = {.name = "bernoulli", .draw = draw, .fill = fill, .truth = truth};
