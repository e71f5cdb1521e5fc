/* SPDX-License-Identifier: Apache-2.0 */
/* Client of the admin endpoint: asks a daemon whether it is healthy, as a container's health check does, or for another
 * line. */
#ifndef CV_ADMIN_PROBE_H
#define CV_ADMIN_PROBE_H

#include "common/config/config.h"

enum { CV_PROBE_MS = 2000 };

/*
 * Requests /health from the socket at `path`, within `limit_ms` in total. CV_OK if the daemon is healthy; CV_ERR_STATE
 * if it is not, with its own reason in `why`; CV_ERR_LIMIT for a wrong path; CV_ERR_IO if no daemon listens, no answer
 * comes in time, or the answer is not valid.
 */
CV_MUST_USE enum cv_err cv_probe_health(const char *path, unsigned limit_ms, struct cv_why *why);

/*
 * Sends a request for `url` with `method` to that socket, and copies the first line of the answer to `line` (cut to
 * `size`). The same errors.
 */
CV_MUST_USE enum cv_err cv_probe_ask(const char *path, const char *method, const char *url, unsigned limit_ms,
                                     char *line, size_t size, struct cv_why *why);

/*
 * Implements --probe, within CV_PROBE_MS: prints one line: what /health says, on standard output, if the daemon is
 * healthy; otherwise the reason, on standard error. Returns the exit status, 0 or 1. `path` NULL: no admin socket is
 * configured.
 */
CV_MUST_USE int cv_probe_run(const char *program, const char *path);

#endif
