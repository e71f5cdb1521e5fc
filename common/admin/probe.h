/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of an admin socket: asks a daemon whether it is healthy, as a container's health check does. */
#ifndef CV_ADMIN_PROBE_H
#define CV_ADMIN_PROBE_H

#include "common/config/config.h"

enum { CV_PROBE_MS = 2000 };

/* The rules for `char *admin` and `bool probe` of a daemon's settings. */
#define CV_ADMIN_RULES(owner)                                                                                         \
  {.key = "admin",                                                                                                    \
   .type = CV_CONFIG_PATH,                                                                                            \
   .offset = offsetof(owner, admin),                                                                                  \
   .help = "Unix socket for /health and /metrics"},                                                                   \
  {                                                                                                                   \
    .key = "probe", .type = CV_CONFIG_BOOL, .offset = offsetof(owner, probe), .fallback = "false", .is_option = true, \
    .help = "ask the running daemon's admin socket whether it is healthy, and exit: 0 if so"                          \
  }

/*
 * Asks the socket at `path` for /health, and waits `limit_ms` at most in all. CV_OK if the daemon is healthy;
 * CV_ERR_STATE if it says that it is not, with its own words in `why`; else CV_ERR_LIMIT (the path), or CV_ERR_IO:
 * nobody is there, nothing comes in time, or what comes is no such answer.
 */
CV_MUST_USE enum cv_err cv_probe_health(const char *path, unsigned limit_ms, struct cv_why *why);

/*
 * --probe, within CV_PROBE_MS: one line, on standard output if the daemon is healthy, else on standard error. Returns
 * the exit status, 0 or 1. `path` NULL: no admin socket is configured.
 */
CV_MUST_USE int cv_probe_run(const char *program, const char *path);

#endif
