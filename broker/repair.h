/* SPDX-License-Identifier: Apache-2.0 */
/* What a recovery repairs at a broker: its store and its core (both/repair.h). */
#ifndef CV_BROKER_REPAIR_H
#define CV_BROKER_REPAIR_H

#include "broker/both/repair.h"

/* `config` of the repair is a struct cv_broker_config. */
extern const struct cv_repair_party cv_broker_repair;

#endif
