/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fresh data of one phase with one Lap(1), never used again: the noise of GAP's phases (Lu, Wang, Qiu and Zhang 2022,
 * Algorithm 1) and of DP-SE. The n-th release is item n alone. A token is in one item, so it
 * costs epsilon once. Variance, in (D/epsilon)^2: 2.
 */
#include "broker/mechanism/classes.h"

static void draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  self->node[0] = cv_mechanism_laplace(self, 1, rng);
}

static void noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret) {
  cv_running_noise(law, 1, ret);
}

const struct cv_mechanism_class cv_mechanism_batch = {
    .traits = &cv_traits_batch,
    .guarantee = CV_GUARANTEE_ALWAYS,
    .prepare = cv_running_prepare,
    .draw = draw,
    .is_live = cv_running_is_live,
    .total = cv_running_total,
    .noise = noise,
    .spent_micro = cv_spent_at_once,
};
