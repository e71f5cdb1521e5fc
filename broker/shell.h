/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's shell: connects the core and the store to a daemon (common/daemon). Workers, gateways and requesters
 * connect to it; it connects to the third-party.
 */
#ifndef CV_BROKER_SHELL_H
#define CV_BROKER_SHELL_H

#include "broker/core.h"
#include "broker/standby.h"
#include "broker/store.h"
#include "common/daemon/program.h"

struct cv_broker_settings {
  struct cv_daemon_settings daemon;
  char *listen, *thirdparty, *thirdparty_name, *state, *anchor, *seal_key;
  char *cobroker, *cobroker_key; /* "": no campaigns with two brokers */
  double limit_epsilon, limit_delta, limit_worker_epsilon;
  uint64_t limit_release_tokens, limit_arms, limit_campaigns, limit_tokens, limit_chunks, limit_queue, lease_ms;
  uint64_t limit_submits, limit_kept, limit_retention_ms;
  uint64_t handshakes, hellos, connections;
  bool trusted_thirdparty, unsafe_mechanisms;
  bool noise_seeded;
  uint64_t noise_seed;
  char *store; /* URI of a database that several brokers share; NULL: the state is in a file */
  int store_durability;
  /* modes that do not run the daemon */
  char *migrate;
  bool examine, recover, lost;
  int seal; /* enum cv_rotate_mode */
  char *recover_thirdparty, *recover_cobroker;
  char *recover_anchor; /* paths, each in a line of its own */
};

enum cv_broker_durability { CV_BROKER_REPLICATED, CV_BROKER_ONE_SERVER };
/* For the setting; ends with NULL. */
extern const char *const CV_BROKER_DURABILITIES[];

/* Which program this is, and the shared databases that it can use: one is built without a client of them. */
#ifdef CV_BROKER_WITH_POSTGRESQL
#include "broker/store/postgres.h"
#define CV_BROKER_PROGRAM "crowdveil-broker-postgresql"
#define CV_BROKER_REMOTE  (&cv_postgres)
#else
#define CV_BROKER_PROGRAM "crowdveil-broker"
#define CV_BROKER_REMOTE  ((const struct cv_remote_ops *)NULL)
#endif

/* Whether the state is in a file or shared, and what goes with it. CV_ERR_INVALID. */
CV_MUST_USE enum cv_err cv_broker_settings_store(const struct cv_broker_settings *settings, struct cv_remote_needs *ret,
                                                 struct cv_why *why);
/* The operator's limits in the core's form. */
struct cv_gate_limits cv_broker_settings_limits(const struct cv_broker_settings *settings);
/* The co-broker's fingerprint: `cobroker` and `cobroker_key`, both or neither. CV_ERR_INVALID; *ret is untouched
 * without a co-broker. */
CV_MUST_USE enum cv_err cv_broker_settings_cobroker(const struct cv_broker_settings *settings, struct cv_digest *ret,
                                                    struct cv_why *why);
/* Runs the daemon until SIGTERM or SIGINT has drained it, or storage has failed. Returns the exit status. */
CV_MUST_USE int cv_broker_run(const struct cv_broker_settings *settings);

#endif
