/* SPDX-License-Identifier: Apache-2.0 */
/* Whether rows that are used once last for a campaign's first plan, and what would help if not. Internal to prepare. */
#ifndef CV_PREPARE_FIRST_PLAN_H
#define CV_PREPARE_FIRST_PLAN_H

#include "prepare/prepare.h"

/*
 * They have to last for every item if the policy cannot go on without one, else for some item, or no release can ever
 * be made. CV_ERR_INVALID with one line, which names what was found to help: more rows, and of a larger epsilon,
 * smaller rounds, fewer items, another policy and rows that are drawn again those with which they last. CV_OK for any
 * other source.
 */
CV_MUST_USE enum cv_err cv_first_plan_check(const struct cv_prepared *prepared, struct cv_why *why);

#endif
