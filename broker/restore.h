/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebuilds the broker's core from stored rows, before the first event.
 *
 * Call order: the records of ended campaigns; for each campaign without a record its description, plans, releases,
 * ledger, standings and state, then cv_broker_restore_whole(); recoveries (recover.h); chunks; journal; the end.
 */
#ifndef CV_BROKER_RESTORE_H
#define CV_BROKER_RESTORE_H

#include <stdint.h>

#include "broker/batch.h"
#include "common/base/buf.h"
#include "common/base/err.h"

struct cv_broker;

/* Each reads a row as a batch wrote it. CV_ERR_DAMAGED if it is malformed or contradicts earlier rows; CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_restore_ended(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_campaign(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_plan(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_release(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_ledger(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_standings(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
CV_MUST_USE enum cv_err cv_broker_restore_state(struct cv_broker *broker, uint32_t campaign, struct cv_reader *row);
/*
 * All rows of the campaign are read. An ended campaign was fetched: it stays in memory to be served from if it agrees
 * with its record, else CV_ERR_DAMAGED.
 */
CV_MUST_USE enum cv_err cv_broker_restore_whole(struct cv_broker *broker, uint32_t campaign);
CV_MUST_USE enum cv_err cv_broker_restore_chunk(struct cv_broker *broker, uint32_t campaign, enum cv_kind kind,
                                                uint64_t number, uint64_t commit, struct cv_reader *bytes);
/* Journal rows, in the order of their commits. */
CV_MUST_USE enum cv_err cv_broker_restore_journal(struct cv_broker *broker, uint32_t campaign, uint64_t commit,
                                                  struct cv_reader *bytes);
/* `commit` is the last stored commit, `totals` the totals stored with it; NULL: not compared. */
CV_MUST_USE enum cv_err cv_broker_restore_end(struct cv_broker *broker, uint64_t commit, const struct cv_totals *totals,
                                              uint64_t now_ms, uint64_t wall_ms);

#endif
