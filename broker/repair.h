/* SPDX-License-Identifier: Apache-2.0 */
/* What a recovery repairs at a broker: its store and its core (both/repair.h). */
#ifndef CV_BROKER_REPAIR_H
#define CV_BROKER_REPAIR_H

#include "broker/both/repair.h"
#include "broker/store.h"

/* An open store and the core that was loaded from it; the first member of a party's bench. */
struct cv_broker_bench {
  struct cv_broker_store *store;
  struct cv_broker *core;
};

/* Of struct cv_repair_party, whatever the store is. */
const struct cv_recovery *cv_broker_bench_recovered(const void *bench);
CV_MUST_USE enum cv_err cv_broker_bench_recover(void *bench, const struct cv_recover_facts *facts,
                                                struct cv_repaired *ret, struct cv_why *why);
CV_MUST_USE enum cv_err cv_broker_bench_commit(void *bench, const struct cv_repair *repair,
                                               const struct cv_recovery *recovery, struct cv_why *why);
CV_MUST_USE enum cv_err cv_broker_bench_anchor(void *bench, struct cv_why *why);

/* Of a database in a file: `config` of the repair is a struct cv_broker_config. */
extern const struct cv_repair_party cv_broker_repair;

#endif
