/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants of the broker's core between any two events. */
#ifndef CV_FUZZ_BROKER_CHECK_H
#define CV_FUZZ_BROKER_CHECK_H

#include "broker/core.h"

/* Aborts if the state contradicts itself. */
void broker_check(struct cv_broker *broker);

#endif
