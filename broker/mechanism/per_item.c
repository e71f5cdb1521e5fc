/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lap(1) on every item: the Simple Counting Mechanism II of Chan, Shi and Song, "Private and Continual Release of
 * Statistics" (2010/2011). The baseline for the trees. A token is in one item, so it costs epsilon once. Variance at n,
 * in (D/epsilon)^2: 2 n. With one segment per item, as here, it equals `segments`; the name is kept for older
 * campaigns.
 */
#include "broker/mechanism/classes.h"

const struct cv_mechanism_class cv_mechanism_per_item = {
    .traits = &cv_traits_per_item,
    .guarantee = CV_GUARANTEE_ALWAYS,
    .prepare = cv_running_prepare,
    .draw = cv_running_draw,
    .is_live = cv_running_is_live,
    .total = cv_running_total,
    .noise = cv_running_noise,
    .spent_micro = cv_spent_at_once,
};
