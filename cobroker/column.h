/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CV_COBROKER_COLUMN_H
#define CV_COBROKER_COLUMN_H

#include "broker/both/holding.h"

struct cv_cobroker;

/* What the co-broker holds of one arm. False if there is no such open campaign or arm. */
bool cv_cobroker_column(struct cv_cobroker *core, uint64_t campaign, uint64_t arm, struct cv_holding *ret);

#endif
