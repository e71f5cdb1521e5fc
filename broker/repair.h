/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovers a stopped broker's database (recover.h describes the charges): opens it in spite of its anchor, reads it,
 * recovers it, commits with a number far above all previous ones, and writes the anchor. A recovery that crashes can be
 * repeated: before the commit nothing has changed, after it only the anchor has to be written.
 */
#ifndef CV_BROKER_REPAIR_H
#define CV_BROKER_REPAIR_H

#include "broker/recover.h"
#include "broker/store.h"

struct cv_repair {
  struct cv_broker_store_files files;    /* `repair` need not be set */
  const struct cv_ring *ring;            /* master keys */
  const struct cv_broker_config *config; /* limits and digest */
  const struct cv_recover_claim *claim;
  size_t claims;
  /* Continue without a database, an anchor or a key that fits: an unreadable database is put aside, and what is unknown
   * is charged to every worker. Without this flag such a recovery is refused. */
  bool lost;
  uint64_t wall_ms;
  /* Told what is about to be committed; an error ends the repair without any change. NULL: not told. */
  enum cv_err (*record)(void *data, const struct cv_recovery *recovery, struct cv_why *why);
  void *record_data;
};

struct cv_repaired {
  bool changed; /* false: nothing to recover */
  struct cv_recovery recovery;
  uint64_t floor_micro; /* charged to every worker by this and all previous recoveries */
  char aside[4200];     /* new path of an unreadable database; "" if there was none */
};

/* CV_ERR_STATE if another process has the database open; CV_ERR_DAMAGED with the reason if `lost` is required. */
CV_MUST_USE enum cv_err cv_broker_repair(const struct cv_repair *repair, struct cv_repaired *ret, struct cv_why *why);

#endif
