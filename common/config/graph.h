/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/config: the section `graph` of a campaign file. */
#ifndef CV_CONFIG_GRAPH_H
#define CV_CONFIG_GRAPH_H

#include "common/config/campaign.h"
#include "common/config/document.h"

/*
 * `edges: [[1, 2], [2, 3]]`, by the items' places from 1 in any order, or `p` and `seed` of a graph to be drawn. Edges
 * go into the spec, in order, as soon as they are said; cv_campaign_graph() checks and draws when the arms are known.
 */
CV_MUST_USE enum cv_err cv_graph_load(struct cv_yaml *yaml, struct cv_campaign_file *campaign, struct cv_why *why);

#endif
