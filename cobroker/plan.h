/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: checked against this co-broker's own ledger and limits; one that is accepted opens an epoch per arm, whose
 * noise is drawn at once. */
#ifndef CV_COBROKER_PLAN_H
#define CV_COBROKER_PLAN_H

#include "common/base/err.h"
#include "proto/codec/share.h"

enum { CV_COBROKER_WANT_BYTES = 12 /* of a plan's row, after the number of its wants */ };

struct cv_cobroker;
struct cv_cobroker_campaign;

/* Handles a PlanOpen of an open campaign, which it may freeze. An error means that the broker broke the protocol. */
CV_MUST_USE enum cv_err cv_cobroker_plan(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                         const struct cv_plan *plan, struct cv_why *why);
/* Whether every arm and opponent is one that the plan may name, each arm once, within the sizes of every broker. */
bool cv_cobroker_plan_fits(const struct cv_cobroker_campaign *campaign, const struct cv_plan *plan);
/* Appends a plan to the campaign's history. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_plan_add(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                             const struct cv_plan *plan);
/* Numbers the places of the last plan's epochs, arm after arm. */
void cv_cobroker_plan_number(struct cv_cobroker_campaign *campaign);

#endif
