/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a ranking says of the items without a class, beyond what delta covers: the best order that there is, how
 * probable it is that two neighbours in it are really the other way round, and which item more tokens would settle
 * next.
 *
 * An item's estimate is its last noisy mean, within its interval. Its standard deviation follows from the number of
 * tokens (for scores between 0 and 1 with mean m, at most m (1 - m) a score), from the privatizer's noise, and from the
 * noise in the release. With both estimates taken as normal and nothing else known, the next one is really the better
 * one with probability Phi(-(difference of the estimates)/(deviation of the difference)).
 */
#ifndef CV_LAUNCHER_REST_H
#define CV_LAUNCHER_REST_H

#include "deploy/launcher/export.h"

struct cv_rest_item {
  uint32_t arm;
  double mean;      /* the estimate; NAN: without a release */
  double deviation; /* of the estimate; NAN: not known, without an export */
  double swapped;   /* the probability that the next one is really better; NAN: not known, or the last one */
  double need;      /* about so many tokens more would settle it; NAN: not known; infinite: no number would */
};

struct cv_rest {
  struct cv_rest_item *item; /* best first; items without a release last; owned */
  uint32_t items;
  uint32_t next; /* index of the item that needs least; UINT32_MAX: not known */
};

/* `export` is complete or NULL; `need` of each arm as cv_policy_need(), or NULL. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_rest_of(const struct cv_standing *standing, uint32_t arms, const struct cv_export *export,
                                   const double *need, struct cv_rest *ret);
void cv_rest_fini(struct cv_rest *rest);
/* The ends of an item's interval, as scores. */
double cv_rest_low(const struct cv_standing *standing);
double cv_rest_high(const struct cv_standing *standing);

#endif
