/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data file of which each honest gateway has a part. The parts have no row in common; of each arm a part has a few
 * rows, which leave in an order of the part's own. A row's score is world_score() at the row's number in the whole
 * file. The world keeps what a gateway's disk would: how many rows of each arm have left to each campaign.
 */
#ifndef CV_SIM_PARTS_H
#define CV_SIM_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/world.h"
#include "worker/core.h"

enum { PARTS_PRINT = 1801 /* the file's fingerprint */ };

/* A gateway while it is up: the record of its part, and the opinion that it was asked for last. */
struct part {
  struct party *party;
  uint64_t *noted; /* by campaign and arm, rows that have left and are not stored yet; 0: none. NULL: no part */
  struct cv_worker_record record;
  bool denied; /* the record could not be read, and the campaign was declined */
  uint32_t arm, opponent;
  uint64_t at, number; /* the place, or the position in the part's order; the place, or the row */
};

/* Adds the stored counts to a world with parts. */
void parts_add(struct world *world);
void part_start(struct part *part, struct party *party, struct cv_work *work);
void part_stop(struct part *part);
/* Whether the gateway should dial again: then the terms come again, and the record may be read. Once. */
bool part_redials(struct part *part);
/* The score of the row at the position `at`. CV_ERR_LIMIT: there is none. */
enum cv_err part_score(const struct part *part, int64_t *ret_score);
/* The gateway stores what it has noted. */
void part_keep(struct part *part);

/* The rows that the part of an honest gateway, counted from 0, has of the arm. */
uint64_t parts_rows(const struct scenario *scenario, uint32_t gateway, uint32_t arm);
/* The number in the whole file of the row of the arm that leaves after `at` others. */
uint64_t parts_row(const struct scenario *scenario, uint32_t gateway, uint32_t arm, uint64_t at);
/* How many have left to the campaign, as stored. */
uint64_t *parts_taken(const struct world *world, uint32_t gateway, uint64_t campaign, uint32_t arm);

#endif
