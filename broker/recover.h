/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery of a broker: what was lost and what workers are charged is both/recover.h; this is what its campaigns and
 * their arms are charged. Pure.
 *
 * - Each arm of a campaign that was open, and may have had releases since: all that it has left.
 * - A recruitment charges only the workers it names, for what its budget can buy of them.
 */
#ifndef CV_BROKER_RECOVER_H
#define CV_BROKER_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/both/recover.h"
#include "common/base/buf.h"

struct cv_broker;

/* Whether the ended campaign of the claim must be fetched first, because its arms' accounts will be written off. */
bool cv_broker_recover_needs(const struct cv_broker *broker, const struct cv_recover_facts *facts,
                             const struct cv_recover_claim *claim);
/*
 * Called between cv_broker_restore_end() and the first event. False, without any change, if there is nothing to
 * recover; else the core's next batch holds the recovery, with a commit number far above every number used before.
 */
bool cv_broker_recover(struct cv_broker *broker, const struct cv_recover_facts *facts, struct cv_recovery *ret);

/* What all recoveries together have charged every worker. */
uint64_t cv_broker_floor_micro(const struct cv_broker *broker);
/* The last stored recovery; NULL if there was none. */
const struct cv_recovery *cv_broker_recovered(const struct cv_broker *broker);

/* Applies a stored recovery to the ledger again; `number` counts from 1. CV_ERR_DAMAGED. */
CV_MUST_USE enum cv_err cv_broker_restore_recovery(struct cv_broker *broker, uint32_t number, struct cv_reader *row);

#endif
