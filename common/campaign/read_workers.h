/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to common/campaign: the `workers` section of a campaign file, which takes the place of `items` where workers
 * are recruited, and its `budget`. A worker is an item with a cost.
 */
#ifndef CV_CAMPAIGN_READ_WORKERS_H
#define CV_CAMPAIGN_READ_WORKERS_H

#include "common/campaign/items.h"
#include "common/config/document.h"

/* Reads the section; cv_items_fini() frees the result. */
CV_MUST_USE enum cv_err cv_workers_load(struct cv_yaml *yaml, struct cv_yaml_pair section, struct cv_items *ret,
                                        struct cv_why *why);
/* Reads an amount of money: 0 < amount <= `most` (in millionths), exact to the millionth. `name` is its name in
 * messages. */
CV_MUST_USE enum cv_err cv_money_take(struct cv_yaml *yaml, const yaml_node_t *node, const char *name, uint64_t most,
                                      uint64_t *ret_micro, struct cv_why *why);

#endif
