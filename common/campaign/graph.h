/* SPDX-License-Identifier: Apache-2.0 */
/* The section `graph` of a campaign file. */
#ifndef CV_CAMPAIGN_GRAPH_H
#define CV_CAMPAIGN_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

/* A feedback graph: its edges are in the spec, or still to be drawn. */
struct cv_graph {
  uint32_t line; /* of the section; 0: there is none */
  bool is_drawn, has_seed;
  double p;
  uint64_t seed;
};

struct cv_spec;
struct cv_yaml;

/*
 * Reads `edges: [[1, 2], [2, 3]]`, item positions from 1 in any order, or `p` and `seed` of a graph to be drawn. Given
 * edges go into the spec at once, sorted; cv_campaign_complete() checks or draws them when the arms are known. Internal
 * to common/campaign.
 */
CV_MUST_USE enum cv_err cv_graph_load(struct cv_yaml *yaml, struct cv_graph *ret, struct cv_spec *spec,
                                      struct cv_why *why);

#endif
