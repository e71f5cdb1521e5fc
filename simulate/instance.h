/* SPDX-License-Identifier: Apache-2.0 */
/* Campaigns in memory: the settings of a prepared campaign with qualities of their own. */
#ifndef CV_SIMULATE_INSTANCE_H
#define CV_SIMULATE_INSTANCE_H

#include "prepare/prepare.h"
#include "simulate/guess.h"

/* Items with a law each, without a file and without names of their own. */
struct cv_instance_items {
  uint32_t count;
  struct cv_items_law law;
  const struct cv_quality_item *item; /* of each */
  const uint64_t *worker;             /* ids of workers that can be hired; NULL: 1, 2, ... */
  const uint64_t *cost_micro;         /* of these workers; NULL: not for hire */
};

/* Makes the items section; the caller frees it with cv_items_fini(). CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_instance_items(const struct cv_instance_items *of, struct cv_items *ret);
/* Makes a campaign file of this spec, without items, names, workers and costs, which cv_prepare_campaign() fills in.
 * CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_instance_file(const char *path, const struct cv_spec *spec, struct cv_campaign_file *ret);

/*
 * Prepares the campaign as another seed would draw it: drawn means and costs, qualities of drivers, an adversary's
 * gains; given means stay. Items are the campaign's arms in order, without their names: gold items are left out.
 * `guess`, if not NULL, draws the means of all items instead. Not for scores from a file (CV_SOURCE_CSV). The caller
 * frees *ret. One line.
 */
CV_MUST_USE enum cv_err cv_instance_draw(const struct cv_prepared *of, uint64_t seed, const struct cv_guess *guess,
                                         struct cv_prepared *ret, struct cv_why *why);

#endif
