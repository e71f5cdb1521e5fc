/* SPDX-License-Identifier: Apache-2.0 */
/* What a recovery repairs at a co-broker: its store and its core (broker/both/repair.h). */
#ifndef CV_COBROKER_REPAIR_H
#define CV_COBROKER_REPAIR_H

#include "broker/both/repair.h"

/* `config` of the repair is a struct cv_cobroker_config. */
extern const struct cv_repair_party cv_cobroker_repair;

#endif
