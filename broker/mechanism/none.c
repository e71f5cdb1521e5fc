/* SPDX-License-Identifier: Apache-2.0 */
/* No noise: exact prefix sums, for a trusted third-party or behind a privatizer. */
#include "broker/mechanism/classes.h"

static enum cv_err prepare(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why) {
  law->nodes = 0;
  return CV_OK;
}

static void draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
}

static bool is_live(const struct cv_mechanism_law *law, uint64_t n, uint32_t node) {
  return false;
}

static int64_t total(const struct cv_mechanism *self, uint64_t n) {
  return 0;
}

static void noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret) {
  ret->groups = 0;
}

static uint64_t spent_micro(const struct cv_mechanism_law *law, uint64_t n) {
  return 0;
}

const struct cv_mechanism_class cv_mechanism_none = {
    .traits = &cv_traits_none,
    .guarantee = "none: releases are exact sums",
    .prepare = prepare,
    .draw = draw,
    .is_live = is_live,
    .total = total,
    .noise = noise,
    .spent_micro = spent_micro,
};
