/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery of a broker whose database was restored from an older copy, or was lost. The lost time is charged as if the
 * worst had happened, open campaigns end, and what was sent in the lost time becomes void. Pure.
 *
 * Sources of knowledge about the lost time, of which both, one or none may exist:
 * - the anchor's totals: the numbers of campaigns, releases and tokens, and the most epsilon that all campaigns
 *   together can have cost one worker;
 * - a third-party's claims: the campaigns it knows, and the numbers of their releases and plans.
 *
 * Charges:
 * - each arm of a campaign that was open, and may have had releases since: all that it has left;
 * - every worker, through the floor: for each campaign that was open, as many tokens as the worker can have given. That
 *   is at most tokens_per_worker, what the campaign's limit leaves, and what the anchor counts as lost, unless there is
 *   evidence that an older anchor was restored, too. If tokens were lost, also what campaigns opened since can have
 *   cost it. A recruitment charges only the workers it names, for what its budget can buy of them;
 * - no worker for tokens that the copy already counts, and no worker more than its account has left.
 */
#ifndef CV_BROKER_RECOVER_H
#define CV_BROKER_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/anchor.h"
#include "broker/recovery.h"
#include "common/base/buf.h"

struct cv_broker;

/* A third-party's knowledge of a campaign. */
struct cv_recover_claim {
  uint64_t campaign, releases, plans;
  uint64_t worker_micro; /* what the campaign can cost a worker */
};

struct cv_recover_facts {
  bool is_anchored; /* `anchor` is set */
  bool is_same;     /* the anchor is of this database and of its history */
  struct cv_anchor_mark anchor;
  uint64_t commit; /* of the database */
  const struct cv_recover_claim *claim;
  size_t claims;
  uint64_t wall_ms;
};

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
