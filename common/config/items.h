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

#endif
