/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovers the database of a stopped broker or co-broker (recover.h describes the charges): opens it in spite of its
 * anchor, reads it, recovers it, commits with a number far above all previous ones, and writes the anchor. A recovery
 * that crashes can be repeated: before the commit nothing has changed, after it only the anchor has to be written.
 */
#ifndef CV_BROKER_BOTH_REPAIR_H
#define CV_BROKER_BOTH_REPAIR_H

#include "broker/both/recover.h"
#include "common/crypto/ring.h"

struct cv_repair;

struct cv_repaired {
  bool changed; /* false: nothing to recover */
  struct cv_recovery recovery;
  uint64_t floor_micro; /* charged to every worker by this and all previous recoveries */
  char aside[4200];     /* new path of an unreadable database; "" if there was none */
};

/* What is repaired: a party's store and core, together a bench. */
struct cv_repair_party {
  const char *records; /* whose records can replace an anchor, and the option that names them */
  /* Opens the store and restores a core. After an error there is no bench. */
  enum cv_err (*load)(const struct cv_repair *repair, void **ret, struct cv_why *why);
  void (*free)(void *bench);
  void (*marks)(const void *bench, struct cv_store_marks *ret);
  /* The last stored recovery; NULL if there was none. */
  const struct cv_recovery *(*recovered)(const void *bench);
  /* Recovers the core; ret->changed is false if there is nothing to recover. */
  enum cv_err (*recover)(void *bench, const struct cv_recover_facts *facts, struct cv_repaired *ret,
                         struct cv_why *why);
  /* Commits the recovery, after `record` of the repair was told, and writes the anchor. */
  enum cv_err (*commit)(void *bench, const struct cv_repair *repair, const struct cv_recovery *recovery,
                        struct cv_why *why);
  /* Writes the anchor from the database's mark. */
  enum cv_err (*anchor)(void *bench, struct cv_why *why);
};

struct cv_repair {
  struct cv_store_files files; /* `repair` need not be set */
  bool is_shared;             /* the database is on a server: its name is only for messages, and nothing is put aside */
  const struct cv_ring *ring; /* master keys */
  const void *config;         /* of the party's core: limits and digest */
  const struct cv_recover_claim *claim;
  size_t claims;
  /* Continue without a database, an anchor or a key that fits: an unreadable database is put aside, and what is unknown
   * is charged to every worker. Without this flag such a recovery is refused. */
  bool lost;
  uint64_t wall_ms;
  /* Told what is about to be committed; an error ends the repair without any change. NULL: not told. */
  enum cv_err (*record)(const void *data, const struct cv_recovery *recovery, struct cv_why *why);
  const void *record_data;
};

/* CV_ERR_STATE if another process has the database open; CV_ERR_DAMAGED with the reason if `lost` is required. */
CV_MUST_USE enum cv_err cv_repair_run(const struct cv_repair_party *party, const struct cv_repair *repair,
                                      struct cv_repaired *ret, struct cv_why *why);

#endif
