/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every recruitment has to be held against. No parameters.
 *
 *   cheapest  spends the budget on the cheapest arm, in one plan
 *   uniform   an affordable arm at random, a pull a plan; from the stream of the plan
 *   opt       knows the true means: the densest arm as often as it can be paid, then the next (the OPT of Zhao et al.
 *             2020, section 5.1). In one process only, since nobody may tell a third-party the truth. Untold it is
 *             `cheapest`
 */
#ifndef CV_THIRDPARTY_BASELINES_H
#define CV_THIRDPARTY_BASELINES_H

#include "thirdparty/policy/policy.h"

extern const struct cv_policy_class cv_policy_cheapest;
extern const struct cv_policy_class cv_policy_opt;
extern const struct cv_policy_class cv_policy_uniform;

#endif
