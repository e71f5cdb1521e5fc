/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases at moments that the third-party chooses: the k-th is the (k-1)-th plus the exact sum of later tokens
 * plus one fresh Lap(1). Here every epoch ends a segment.
 *
 * A token is in one segment, so it costs epsilon once, by parallel composition. The moments may depend on earlier
 * releases: noise does not depend on data. Variance at n, in (D/epsilon)^2: 2 n.
 *
 * Node 0 is the sum of all noises drawn so far.
 */
#include "broker/mechanism/classes.h"

enum cv_err cv_running_prepare(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why) {
  law->nodes = 1;
  return CV_OK;
}

void cv_running_draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  self->node[0] = cv_wrapping_add(self->node[0], cv_mechanism_laplace(self, 1, rng));
}

bool cv_running_is_live(const struct cv_mechanism_law *law, uint64_t n, uint32_t node) {
  return true;
}

int64_t cv_running_total(const struct cv_mechanism *self, uint64_t n) {
  return self->node[0];
}

void cv_running_noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret) {
  ret->groups = 1;
  ret->group[0] = (struct cv_noise_group){.scale = 1, .count = (uint32_t)n};
}

uint64_t cv_spent_at_once(const struct cv_mechanism_law *law, uint64_t n) {
  return law->epsilon_micro;
}

const struct cv_mechanism_class cv_mechanism_segments = {
    .traits = &cv_traits_segments,
    .guarantee = CV_GUARANTEE_ALWAYS,
    .prepare = cv_running_prepare,
    .draw = cv_running_draw,
    .is_live = cv_running_is_live,
    .total = cv_running_total,
    .noise = cv_running_noise,
    .spent_micro = cv_spent_at_once,
};
