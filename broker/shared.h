/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database of a broker on a server (store/remote.h) while no broker is active, for the options --examine, --recover
 * and --seal.
 */
#ifndef CV_BROKER_SHARED_H
#define CV_BROKER_SHARED_H

#include "broker/both/repair.h"
#include "broker/shell.h"

struct cv_shared {
  struct cv_remote *remote;
  struct cv_broker_store *store;
  struct cv_store_marks marks;
  struct cv_remote_view view;
};

/* The database's name, for messages. */
struct cv_shared_name {
  char text[400];
};
struct cv_shared_name cv_shared_name(const struct cv_broker_settings *settings);

/* Gets the lock and opens the store. CV_ERR_STATE: a broker is active. After an error there is nothing to close. */
CV_MUST_USE enum cv_err cv_shared_open(const struct cv_broker_settings *settings, const struct cv_ring *ring,
                                       enum cv_remote_task task, struct cv_shared *ret, struct cv_why *why);
void cv_shared_close(struct cv_shared *shared);

/* What is repaired of it: `config` of the repair is a struct cv_shared_recovery. */
struct cv_shared_recovery {
  const struct cv_broker_settings *settings;
  struct cv_broker_config config;
};
extern const struct cv_repair_party cv_shared_repair;

#endif
