/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third-party's shell: connects the core and the store to a daemon (common/daemon). It accepts connections of
 * brokers and makes none.
 */
#ifndef CV_THIRDPARTY_SHELL_H
#define CV_THIRDPARTY_SHELL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/daemon/program.h"
#include "common/page/settings.h"

struct cv_thirdparty_settings {
  struct cv_daemon_settings daemon;
  struct cv_page_settings page;
  char *listen, *brokers, *state;
  uint64_t campaigns, arms;
  bool examine; /* examine the state instead of running */
};

/* Runs the daemon until SIGTERM or SIGINT has drained it, or storing fails. Returns the exit status. */
CV_MUST_USE int cv_thirdparty_run(const struct cv_thirdparty_settings *settings);

#endif
