/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/config: the `items` section of a campaign file. */
#ifndef CV_CONFIG_ITEMS_H
#define CV_CONFIG_ITEMS_H

#include "common/config/campaign.h"
#include "common/config/document.h"

/* `section` is the mapping under `items`. */
CV_MUST_USE enum cv_err cv_items_load(struct cv_yaml *yaml, struct cv_yaml_pair section, struct cv_items *ret,
                                      struct cv_why *why);
void cv_items_fini(struct cv_items *items);

/* The words for enum cv_rewards. */
extern const char *const cv_rewards_words[];
/* The spread of a law of which nobody says it. */
double cv_spread_usual(enum cv_rewards rewards);
/* A spread that was given; a beta or truncated normal law without one is none. */
CV_MUST_USE enum cv_err cv_spread_take(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *section,
                                       enum cv_rewards rewards, double spread, double *ret, struct cv_why *why);

#endif
