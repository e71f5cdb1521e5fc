/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics that every daemon has: its build, its process, its certificates and its disk. */
#ifndef CV_DAEMON_GAUGES_H
#define CV_DAEMON_GAUGES_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "common/db/committer.h"
#include "common/net/tls.h"

struct cv_daemon_gauges {
  const char *program;
  uint64_t started_ms; /* wall clock */
  int memory;          /* /proc/self/statm, which the sandbox does not let a daemon open; -1: not there */
  uint64_t reloads, reloads_failed;
  uint64_t committed_ms; /* wall clock; 0: not yet */
  bool is_healthy, is_ready, has_crl;
  struct cv_tls_ends ends;
  const struct cv_committer *committer;
  const char *state, *database; /* folder, and the file in it; NULL: none */
};

/* Opens what the metrics read; call before the sandbox. */
void cv_daemon_gauges_open(struct cv_daemon_gauges *gauges, const char *program);
void cv_daemon_gauges_close(struct cv_daemon_gauges *gauges);
/* Appends the metrics. The caller has set the fields below `memory`. */
void cv_daemon_gauges_put(const struct cv_daemon_gauges *gauges, struct cv_buf *out);

#endif
