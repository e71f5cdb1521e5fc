/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation of a step's arrays, for the policies. */
#ifndef CV_THIRDPARTY_STEP_H
#define CV_THIRDPARTY_STEP_H

#include "thirdparty/policy/policy.h"

/* Makes room for this many decisions and wants in all, so that filling the step cannot fail half-way. */
CV_MUST_USE enum cv_err cv_policy_step_reserve(struct cv_policy_step *step, size_t decisions, size_t wants);

#endif
