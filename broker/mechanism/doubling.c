/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `segments` that end at n = 2^m only: m + 1 noises of Lap(1) up to there. Between powers of two nothing new leaves:
 * the n-th release repeats the previous one. A token is in one segment, so it costs epsilon once. Variance at n, in
 * (D/epsilon)^2: 2 (floor(log2 n) + 1), of the prefix sum at the last power of two.
 */
#include "broker/mechanism/classes.h"

static void draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  if (cv_is_power_of_two(n)) {
    cv_running_draw(self, n, rng);
  }
}

static void noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret) {
  cv_running_noise(law, cv_log2_floor(n) + 1, ret);
}

const struct cv_mechanism_class cv_mechanism_doubling = {
    .traits = &cv_traits_doubling,
    .guarantee = CV_GUARANTEE_ALWAYS,
    .prepare = cv_running_prepare,
    .draw = draw,
    .is_live = cv_running_is_live,
    .total = cv_running_total,
    .noise = noise,
    .spent_micro = cv_spent_at_once,
};
