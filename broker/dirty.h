/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks and arms that differ from their stored form, in the order of their first change: a ring in the core. */
#ifndef CV_BROKER_DIRTY_H
#define CV_BROKER_DIRTY_H

#include <stdint.h>

#include "broker/batch.h"

struct cv_broker;
struct cv_broker_campaign;
struct cv_chunk;

struct cv_dirty {
  uint32_t campaign; /* 0: not of a campaign */
  enum cv_kind kind;
  uint64_t number; /* of the chunk or arm */
  uint64_t since;  /* commit of the first change not yet stored */
};

/* Records that the chunk, or the arm, has changed. Running out of memory ends the core. */
void cv_dirty_chunk(struct cv_broker *broker, uint32_t campaign, enum cv_kind kind, struct cv_chunk *chunk);
void cv_dirty_arm(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint32_t arm);
/* Removes and returns the oldest entry; the ring must not be empty. */
struct cv_dirty cv_dirty_pop(struct cv_broker *broker);

#endif
