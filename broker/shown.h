/* SPDX-License-Identifier: Apache-2.0 */
/* The arms that an assignment covers. Without a feedback graph that is its own arm only, and counting is trivial. */
#ifndef CV_BROKER_SHOWN_H
#define CV_BROKER_SHOWN_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/base/spec.h"

struct cv_broker_campaign;
struct cv_plan;

/* Room to count in: an element an arm. Private to shown.c. */
struct cv_shown {
  uint32_t *plays; /* all zero between calls; owned */
  uint64_t *by;    /* owned */
};

CV_MUST_USE enum cv_err cv_shown_init(struct cv_shown *shown, uint32_t arms);
void cv_shown_fini(struct cv_shown *shown);

/* Lists the arm, whose open epoch must have a free place, and its neighbours that the plan names; returns how many. */
uint32_t cv_shown_list(const struct cv_broker_campaign *campaign, uint32_t arm, uint32_t list[CV_VALUES_MAX]);
/* For each want of a plan, whose arms must be the campaign's: how many tokens of its arm the plan's plays yield. Valid
 * until the next call. */
const uint64_t *cv_shown_by(const struct cv_broker_campaign *campaign, const struct cv_plan *plan);
/* Adds a token's values to the sums of the arms in `list`, in its order. */
void cv_shown_add(struct cv_broker_campaign *campaign, const uint32_t *list, uint32_t n, const int64_t *value);
/* Derives from the restored plans and plays: tokens of earlier epochs, expected and seen tokens of open ones. */
void cv_shown_restore(struct cv_broker_campaign *campaign);

#endif
