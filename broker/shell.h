/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's shell: libuv, TLS and SQLite around the core. Every turn of the loop feeds the core what has come in;
 * the core's batch goes to storage (a small one on the spot, while the disk is quick), and what it had to say goes out
 * when that returns.
 */
#ifndef CV_BROKER_SHELL_H
#define CV_BROKER_SHELL_H

#include "broker/core.h"
#include "broker/store.h"
#include "common/config/link.h"
#include "common/sandbox/sandbox.h"

struct cv_broker_settings {
  char *listen, *thirdparty, *thirdparty_name, *state, *anchor, *seal_key, *admin;
  struct cv_link_settings link;
  uint64_t limit_epsilon_micro, limit_worker_epsilon_micro;
  double limit_epsilon, limit_delta, limit_worker_epsilon;
  uint64_t limit_release_tokens, limit_arms, limit_campaigns, limit_tokens, limit_chunks, limit_queue, lease_ms;
  uint64_t limit_submits, limit_kept, limit_retention_ms;
  uint64_t handshakes, hellos, connections;
  bool trusted_thirdparty, unsafe_mechanisms;
  bool noise_seeded;
  uint64_t noise_seed;
  struct cv_sandbox_settings sandbox;
  /* instead of running */
  bool probe, examine, recover, lost;
  char *recover_thirdparty;
};

struct cv_broker_shell;

/*
 * Opens everything and gives up the rest; after that the daemon can be reached. One line in `why` on failure, nothing
 * left half-done.
 */
CV_MUST_USE enum cv_err cv_broker_shell_start(const struct cv_broker_settings *settings, struct cv_broker_shell **ret,
                                              struct cv_why *why);
/* The operator's limits as the core has them. */
struct cv_broker_limits cv_broker_settings_limits(const struct cv_broker_settings *settings);
/* "HOST:PORT" on which workers and requesters are awaited. */
const char *cv_broker_shell_address(const struct cv_broker_shell *shell);
/* Until SIGTERM or SIGINT has drained it, or storage has failed. The exit status. */
int cv_broker_shell_run(struct cv_broker_shell *shell);
void cv_broker_shell_free(struct cv_broker_shell *shell);

#endif
