/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks and arms that differ from their stored form, in the order of their first change: a ring in the core. */
#ifndef CV_COBROKER_DIRTY_H
#define CV_COBROKER_DIRTY_H

#include <stdint.h>

#include "cobroker/batch.h"

struct cv_chunk;
struct cv_cobroker;
struct cv_cobroker_campaign;

struct cv_cobroker_dirty {
  uint32_t campaign;        /* 0: not of a campaign */
  enum cv_cobroker_row row; /* ARM, PLACES, SLOTS, ASKED, ACCOUNTS */
  uint64_t number;          /* of the chunk or arm */
  uint64_t since;           /* commit of the first change not yet stored */
};

struct cv_cobroker_dirt {
  struct cv_cobroker_dirty *at; /* ring; owned */
  size_t cap, head, count;
};

/* Records that the chunk, or the arm, has changed. Running out of memory ends the core. */
void cv_cobroker_dirty_chunk(struct cv_cobroker *core, uint32_t campaign, enum cv_cobroker_row row,
                             struct cv_chunk *chunk);
void cv_cobroker_dirty_arm(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, uint32_t arm);
/* Removes and returns the oldest entry; the ring must not be empty. */
struct cv_cobroker_dirty cv_cobroker_dirty_pop(struct cv_cobroker *core);

#endif
