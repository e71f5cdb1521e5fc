/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns places to waiting workers, in turn, within credit, free places and each connection's share. */
#ifndef CV_BROKER_ASSIGN_H
#define CV_BROKER_ASSIGN_H

#include <stdint.h>

#include "common/base/err.h"

struct cv_broker;

enum {
  CV_AGAIN = 8,         /* a place may be offered again after 1 / CV_AGAIN of the lease */
  CV_BUSY_MAX = 64,     /* waiting workers with an open assignment that one turn skips */
  CV_PASSED_MAX = 4096, /* waiting workers whose own arm has no free place that one turn skips */
};

/* One turn of every connection; each call starts with a different connection. CV_ERR_NOMEM, CV_ERR_CRYPTO. */
CV_MUST_USE enum cv_err cv_broker_assign(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms);

#endif
