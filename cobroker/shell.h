/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The co-broker's shell: connects the core and the store to a daemon (common/daemon). The broker, workers and gateways
 * connect to it.
 */
#ifndef CV_COBROKER_SHELL_H
#define CV_COBROKER_SHELL_H

#include "cobroker/core.h"
#include "cobroker/store.h"
#include "common/daemon/program.h"

struct cv_cobroker_settings {
  struct cv_daemon_settings daemon;
  char *listen, *broker_name, *broker_key, *state, *anchor, *seal_key;
  double limit_epsilon, limit_delta, limit_worker_epsilon;
  uint64_t limit_release_tokens, limit_arms, limit_campaigns, limit_submits, limit_tokens, limit_chunks, limit_kept,
      limit_sessions;
  uint64_t handshakes, hellos, connections;
  bool noise_seeded;
  uint64_t noise_seed;
  /* modes that do not run the daemon */
  bool examine, recover, lost;
  char *recover_broker;
  int seal; /* enum cv_rotate_mode */
};

/* The operator's limits in the core's form. */
struct cv_gate_limits cv_cobroker_settings_limits(const struct cv_cobroker_settings *settings);
/* The broker's key. CV_ERR_INVALID with the reason. */
CV_MUST_USE enum cv_err cv_cobroker_settings_key(const struct cv_cobroker_settings *settings, struct cv_digest *ret,
                                                 struct cv_why *why);
/* The database's path in the state folder. CV_ERR_INVALID if it is too long. */
enum { CV_COBROKER_PATH_BYTES = 4096 };
CV_MUST_USE enum cv_err cv_cobroker_settings_database(const struct cv_cobroker_settings *settings,
                                                      char ret[CV_COBROKER_PATH_BYTES], struct cv_why *why);
/* Runs the daemon until SIGTERM or SIGINT stops it, or storage has failed. Returns the exit status. */
CV_MUST_USE int cv_cobroker_run(const struct cv_cobroker_settings *settings);

#endif
