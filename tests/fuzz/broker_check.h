/* SPDX-License-Identifier: Apache-2.0 */
/* What holds in the broker's core between any two events. */
#ifndef CV_FUZZ_BROKER_CHECK_H
#define CV_FUZZ_BROKER_CHECK_H

#include "broker/core.h"

/* Aborts where the state does not agree with itself. */
void broker_check(struct cv_broker *broker);

#endif
