/* SPDX-License-Identifier: Apache-2.0 */
/* Reads campaigns that have ended, for requesters who wait for them (fetch.h). */
#ifndef CV_BROKER_READING_H
#define CV_BROKER_READING_H

#include "broker/store.h"
#include "common/daemon/daemon.h"

/* All zero is valid. */
struct cv_reading {
  bool is_beside; /* set by the caller: on the storage thread, as a server may answer late */
  /* private */
  uint64_t from_ms, began_ms; /* monotonic: nothing is read before; the present one began */
  struct cv_fetched fetched;  /* what is being read beside the loop */
  struct cv_daemon *daemon;
  struct cv_broker_store *store;
  struct cv_broker *core;
};

/*
 * Reads one, or begins to; only from inside the turn's `between` (common/daemon/turn.h). The pause after it grows with
 * the time that it took, so that requesters use only a small part of the loop, or of the storage thread, however large
 * their campaigns are. Requesters are told of damaged rows; any other error ends the daemon. Daemon, store and core are
 * borrowed until the daemon's loop has ended.
 */
void cv_reading_go(struct cv_reading *reading, struct cv_daemon *daemon, struct cv_broker_store *store,
                   struct cv_broker *core);

#endif
