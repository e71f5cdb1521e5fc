/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stopped broker's database is recovered (recover.h says what that charges): opened whatever its anchor says, read,
 * recovered, committed under a number far above all before, and anchored. A crash leaves it repeatable: before the
 * commit nothing has changed, after it there is only the anchor to write.
 */
#ifndef CV_BROKER_REPAIR_H
#define CV_BROKER_REPAIR_H

#include "broker/recover.h"
#include "broker/store.h"

struct cv_repair {
  struct cv_broker_store_files files; /* `repair` need not be set */
  const struct cv_key *master;
  const struct cv_broker_config *config; /* limits and digest */
  const struct cv_recover_claim *claim;
  size_t claims;
  /* Go on without a database, an anchor or a key that fits: an unreadable database is put aside, and what is not known
   * is charged to everybody. Without it that is refused. */
  bool lost;
  uint64_t wall_ms;
};

struct cv_repaired {
  bool changed; /* false: there was nothing to recover */
  struct cv_recovery recovery;
  uint64_t floor_micro; /* charged to every worker by this recovery and those before */
  char aside[4200];     /* where an unreadable database was put; "" if none was */
};

/* CV_ERR_STATE if a program has the database open; CV_ERR_DAMAGED with the reason where `lost` is needed. */
CV_MUST_USE enum cv_err cv_broker_repair(const struct cv_repair *repair, struct cv_repaired *ret, struct cv_why *why);

#endif
