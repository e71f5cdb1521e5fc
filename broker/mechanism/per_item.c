/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lap(1) on every item: the Simple Counting Mechanism II of Chan, Shi and Song, "Private and Continual Release of
 * Statistics" (2010/2011). The baseline that the trees are measured against. A token is in one item, so epsilon once.
 * Variance at n, in (D/epsilon)^2: 2 n. With one segment an item, as here, it is `segments` by its older name.
 */
#include "broker/mechanism/classes.h"

const struct cv_mechanism_class cv_mechanism_per_item = {
    .name = "per-item",
    .guarantee = CV_GUARANTEE_ALWAYS,
    .has_noise = true,
    .is_private = true,
    .prepare = cv_running_prepare,
    .draw = cv_running_draw,
    .is_live = cv_running_is_live,
    .total = cv_running_total,
    .noise = cv_running_noise,
    .spent_micro = cv_spent_at_once,
};
