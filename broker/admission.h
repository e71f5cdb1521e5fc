/* SPDX-License-Identifier: Apache-2.0 */
/* Which campaigns may begin: by the operator's limits, and by those of the co-broker as far as it has told them. */
#ifndef CV_BROKER_ADMISSION_H
#define CV_BROKER_ADMISSION_H

#include "common/base/gold.h"
#include "common/base/hello.h"
#include "common/base/spec.h"

struct cv_broker;

/* Takes the limits that the co-broker's hello states. They stay known while it is away. */
void cv_admission_learn(struct cv_broker *broker, const struct cv_hello *hello);
/*
 * Checks a new campaign, and completes `spec`: its smallest release becomes that of the broker, or of the co-broker if
 * it has the larger one. CV_ERR_DENIED, CV_ERR_INVALID or CV_ERR_NOT_FOUND; the reason names the limit.
 */
CV_MUST_USE enum cv_err cv_admission_check(const struct cv_broker *broker, struct cv_spec *spec,
                                           const struct cv_gold *gold, struct cv_why *why);
/* The same without the limits: a campaign that was accepted before is completed as it was then. */
CV_MUST_USE enum cv_err cv_admission_complete(const struct cv_broker *broker, struct cv_spec *spec, struct cv_why *why);

#endif
