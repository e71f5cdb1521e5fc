/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drivers of a file of taxi trips as workers that can be hired (Zhao et al. 2020, section 5.1). The file is a CSV
 * as in csv.h with columns taxi_id, trip_miles and pickup_community_area, as the City of Chicago publishes them. Trips
 * without an id, an area (where one is asked for) or miles (nothing, or 0: a meter that was not running) are left out,
 * as unusable ones are in the paper. Text where a number belongs is an error, with its line.
 */
#ifndef CV_WORKER_TAXI_H
#define CV_WORKER_TAXI_H

#include "common/base/err.h"
#include "common/base/spec.h"
#include "common/config/campaign.h"

struct cv_taxis {
  uint32_t drivers;
  struct cv_label *name; /* taxi_id, or as much of it as fits; who made most trips first, of equal ones in order of
                            bytes; owned */
  uint64_t *cost_micro;  /* what the mean trip's miles cost; 1 .. CV_COST_MAX_MICRO; owned */
  uint64_t trips;        /* of all drivers that were chosen */
};

/* `items` is a taxi source. CV_ERR_IO, CV_ERR_INVALID, CV_ERR_LIMIT or CV_ERR_NOMEM, with a line. */
CV_MUST_USE enum cv_err cv_taxis_read(const struct cv_items *items, struct cv_taxis *ret, struct cv_why *why);
/* Whether both read the same drivers from the same file. */
bool cv_taxis_are_same(const struct cv_items *a, const struct cv_items *b);
void cv_taxis_fini(struct cv_taxis *taxis);

#endif
