/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drivers of a file of taxi trips as workers for hire (Zhao et al. 2020, section 5.1). The file is a CSV as in
 * csv.h with columns taxi_id, trip_miles and pickup_community_area, as the City of Chicago publishes them. The reader
 * skips trips without an id, without miles (empty or 0) or outside the requested area, as the paper does with unusable
 * trips. Text in a number's column is an error, with its line.
 */
#ifndef CV_WORKER_TAXI_H
#define CV_WORKER_TAXI_H

#include "common/base/err.h"
#include "common/base/spec.h"
#include "common/campaign/items.h"

enum { CV_TAXI_COLUMNS = 3 };
extern const char *const cv_taxi_columns[CV_TAXI_COLUMNS]; /* as above */

struct cv_taxis {
  uint32_t drivers;
  const char **name;    /* taxi_id, cut to fit; sorted by number of trips, the largest first, then by bytes; owned */
  uint64_t *cost_micro; /* cost of the driver's mean trip in miles; 1 .. CV_COST_MAX_MICRO; owned */
  uint64_t trips;       /* of all chosen drivers */
};

/* The caller frees *ret with cv_taxis_fini(). CV_ERR_IO, CV_ERR_INVALID, CV_ERR_LIMIT or CV_ERR_NOMEM, with a line. */
CV_MUST_USE enum cv_err cv_taxis_read(const struct cv_items_taxi *items, struct cv_taxis *ret, struct cv_why *why);
/* True if both sections select the same drivers and costs from the same file. */
bool cv_taxis_are_same(const struct cv_items *a, const struct cv_items *b);
void cv_taxis_fini(struct cv_taxis *taxis);

#endif
