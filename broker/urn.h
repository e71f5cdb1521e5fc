/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The free places of a campaign, from which the place to ask for next is drawn: an arm's chance is its share of them,
 * so that the arms come in the order of a random permutation of all places. Otherwise who is asked about an arm would
 * depend on who was asked before: a crowd that comes in a fixed order would meet the arms in that order, and all
 * answers about an arm would be those of the same few people.
 *
 * Sums over arms in a binary indexed tree (Fenwick, "A new data structure for cumulative frequency tables", 1994): a
 * change and a draw cost the logarithm of the number of arms.
 */
#ifndef CV_BROKER_URN_H
#define CV_BROKER_URN_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/base/rng.h"

struct cv_urn {
  uint64_t *sum; /* owned */
  uint32_t arms;
  uint64_t places; /* of all arms */
};

/* No places. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_urn_init(struct cv_urn *urn, uint32_t arms);
void cv_urn_fini(struct cv_urn *urn);
/* Adds places of an arm, or takes away as many as it has at most. */
void cv_urn_add(struct cv_urn *urn, uint32_t arm, uint64_t places);
void cv_urn_take(struct cv_urn *urn, uint32_t arm, uint64_t places);
/* The arm of a place that is drawn uniformly. There must be one. */
uint32_t cv_urn_draw(const struct cv_urn *urn, struct cv_rng *rng);

#endif
