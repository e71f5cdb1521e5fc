/* SPDX-License-Identifier: Apache-2.0 */
/* A uniform draw among the maximal independent sets of a small graph. */
#ifndef CV_THIRDPARTY_INDEPENDENT_H
#define CV_THIRDPARTY_INDEPENDENT_H

#include "common/base/rng.h"

/* The most arms. A graph of n arms has at most 3^(n/3) maximal independent sets (Moon and Moser 1965): 6561 here. */
enum { CV_INDEPENDENT_ARMS = 24 };

/*
 * Draws one of the maximal independent sets of the graph that `among`, a mask of arms below CV_INDEPENDENT_ARMS,
 * induces; each set with the same probability. neighbour[a] is the mask of the neighbours of arm a, without a. Returns
 * the set's mask. Visits every set twice.
 */
uint32_t cv_independent_draw(const uint32_t *neighbour, uint32_t among, struct cv_rng *rng);

#endif
