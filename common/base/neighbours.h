/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign's feedback graph as adjacency lists, and how often a plan shows an arm. */
#ifndef CV_BASE_NEIGHBOURS_H
#define CV_BASE_NEIGHBOURS_H

#include "common/base/result.h"
#include "common/base/spec.h"

struct cv_neighbours {
  uint32_t *first; /* the neighbours of arm a are arm[first[a]] .. arm[first[a + 1] - 1], ascending; owned */
  uint32_t *arm;   /* owned */
};

/* The edges must be those of a checked spec. */
CV_MUST_USE enum cv_err cv_neighbours_init(const struct cv_spec *spec, struct cv_neighbours *ret);
void cv_neighbours_fini(struct cv_neighbours *neighbours);

/*
 * Draws the edges of an Erdos-Renyi graph: any two arms are joined with probability p, using the stream (seed,
 * CV_RNG_GRAPH). The spec must have no edges yet. CV_ERR_LIMIT if there are more than CV_EDGES_MAX.
 */
CV_MUST_USE enum cv_err cv_neighbours_draw(struct cv_spec *spec, double p, uint64_t seed);

/*
 * How often a plan shows an arm that it names: the arm's own plays plus those of its neighbours. `plays` has the plan's
 * tokens by arm, and 0 for arms that the plan does not name.
 */
uint64_t cv_neighbours_shown(const struct cv_neighbours *neighbours, const uint32_t *plays, uint32_t arm);

#endif
