/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The co-broker of a broker's world: a real core, whose store never fails and whose workers have one session. What
 * it says reaches the broker as it is, or bent.
 */
#ifndef CV_FUZZ_BROKER_CO_H
#define CV_FUZZ_BROKER_CO_H

#include "common/base/terms.h"
#include "proto/codec/crowd.h"
#include "tests/fuzz/broker_world.h"

void co_begin(struct world *world);
void co_end(struct world *world);
/* It has lost everything. */
void co_lose(struct world *world);
/* The link between the two is up, at the broker's end this connection; or it is down. */
void co_join(struct world *world, struct peer *peer);
void co_leave(struct world *world);
/* A frame of the broker. It must be one that an honest broker sends, unless the co-broker has lied before. */
void co_hear(struct world *world, const struct cv_share_frame *frame);
/* A commit; then it says what it has to say. `bend`: 0 to 127: nothing is changed. */
void co_turn(struct world *world, uint8_t bend);

/* A worker's token in two shares, under a session that all of them have. `value` is in grid units, and rounded down;
 * `leader` is room for the broker's share. False if the campaign has no session yet. */
bool co_split(struct world *world, const struct cv_terms *terms, const struct cv_split_token *token, int64_t value,
              uint8_t leader[CV_SPLIT_LEADER_MOST], struct cv_token_share *ret);

#endif
