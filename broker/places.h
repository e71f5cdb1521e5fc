/* SPDX-License-Identifier: Apache-2.0 */
/* The places of an arm's open epoch: which are filled, and which can be assigned. */
#ifndef CV_BROKER_PLACES_H
#define CV_BROKER_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct cv_arm;
struct cv_broker;
struct cv_broker_campaign;

/*
 * The bit of a place in `places` of its campaign: its round, counted over all plans and arms. So the places of a plan
 * are close together, however many arms it names, and chunks of earlier plans are no longer needed.
 */
uint64_t cv_place_bit(const struct cv_arm *arm, uint32_t position);
/* Drops the bits of the plans before the last one, in whole chunks; chunks that are stored are deleted with a batch. */
void cv_places_drop(struct cv_broker *broker, struct cv_broker_campaign *campaign);
/* Whether all places of the chunk are of earlier plans. */
bool cv_places_are_past(const struct cv_broker_campaign *campaign, uint64_t chunk);

/* The number of places of an arm that can be assigned. */
uint32_t cv_arm_free_places(const struct cv_arm *arm);
/* Whether a place of the arm may be assigned to a connection that has no scores from place `below` of the arm's stream
 * on. The place may turn out to be filled. */
bool cv_arm_has_place(struct cv_arm *arm, uint64_t below);
/* Takes such a place, skipping filled ones; false if there is none. The position counts from
 * the epoch's start. */
bool cv_arm_take_place(struct cv_broker_campaign *campaign, uint32_t arm, uint64_t below, uint32_t *ret_position);
/* Whether a place of the arm's open epoch below `below` is not filled, assigned or not. */
bool cv_arm_lacks_place(struct cv_broker_campaign *campaign, uint32_t arm, uint64_t below);
/* Makes the place available again. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_arm_return_place(struct cv_broker_campaign *campaign, uint32_t arm, uint32_t position);

#endif
