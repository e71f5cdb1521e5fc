/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opponent that the asked arm of a place is compared with, in a campaign of pairs: uniform over all other arms, and
 * independent from place to place, to anyone without the broker's key of tickets. It is a function of that key and the
 * place, so a place that is assigned again, after a lease or a restart or to another gateway, has the same opponent: no
 * worker can decline its way to one that it likes.
 */
#ifndef CV_BROKER_OPPONENT_H
#define CV_BROKER_OPPONENT_H

#include <stdint.h>

#include "broker/ticket.h"

/* A place, as a ticket names it. */
struct cv_opponent_place {
  uint32_t campaign, arm, position;
  uint64_t plan;
};

/* Sets the opponent's arm. arms >= 2, place->arm < arms. CV_ERR_NOMEM is the only error. */
CV_MUST_USE enum cv_err cv_opponent_draw(const struct cv_tagger *tagger, const struct cv_opponent_place *place,
                                         uint32_t arms, uint32_t *ret_arm);

#endif
