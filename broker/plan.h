/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which plans of the third-party are accepted. */
#ifndef CV_BROKER_PLAN_H
#define CV_BROKER_PLAN_H

#include "common/base/err.h"

struct cv_broker_campaign;
struct cv_plan;
struct cv_rank_refused;

/*
 * Whether the campaign can accept the plan as its next one. CV_ERR_DENIED if not: *ret_refused has the reason, the
 * amount asked for and the amount left; `why` has the reason as a line.
 */
CV_MUST_USE enum cv_err cv_broker_plan_check(const struct cv_broker_campaign *campaign, const struct cv_plan *plan,
                                             struct cv_rank_refused *ret_refused, struct cv_why *why);
#endif
