/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CV_BROKER_COLUMN_H
#define CV_BROKER_COLUMN_H

#include "broker/both/holding.h"

struct cv_broker;

/* What the broker holds of one arm. False if there is no such campaign or arm in memory. */
bool cv_broker_column(struct cv_broker *broker, uint64_t campaign, uint64_t arm, struct cv_holding *ret);

#endif
