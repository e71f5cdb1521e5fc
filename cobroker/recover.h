/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery of a co-broker: what was lost and what workers are charged is broker/both/recover.h. Every open campaign
 * ends: what of its noise, its shares and its verify key was used in the lost time is unknown, and none of it is used
 * again. No campaign that was opened in the lost time is opened a second time, under another verify key. Pure.
 */
#ifndef CV_COBROKER_RECOVER_H
#define CV_COBROKER_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/both/recover.h"
#include "common/base/buf.h"

struct cv_cobroker;

/*
 * Called between cv_cobroker_restore_end() and the first event. False, without any change, if there is nothing to
 * recover; else the core's next batch holds the recovery, with a commit number far above every number used before.
 */
bool cv_cobroker_recover(struct cv_cobroker *core, const struct cv_recover_facts *facts, struct cv_recovery *ret);

/* What all recoveries together have charged every worker. */
uint64_t cv_cobroker_floor_micro(const struct cv_cobroker *core);
/* The last stored recovery; NULL if there was none. */
const struct cv_recovery *cv_cobroker_recovered(const struct cv_cobroker *core);

/* Applies a stored recovery again; `number` counts from 1. CV_ERR_DAMAGED. */
CV_MUST_USE enum cv_err cv_cobroker_restore_recovery(struct cv_cobroker *core, uint64_t number, struct cv_reader *row);

#endif
