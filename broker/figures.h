/* SPDX-License-Identifier: Apache-2.0 */
/* The counters and gauges of a broker's core, for health and metrics. Counts and sums only: nothing of a token. */
#ifndef CV_BROKER_FIGURES_H
#define CV_BROKER_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/refusals.h"
#include "common/base/result.h"
#include "common/net/identity.h"

/* Counters since the start; from `conns` on, current gauges. */
struct cv_broker_figures {
  uint64_t tokens, duplicates, expired, refused, releases, plans;
  uint64_t gold_answers, gold_found; /* answers to gold items, which are no tokens; workers that they found */
  uint64_t ended[CV_END_COUNT];      /* campaigns, by the reason of their end */
  struct cv_refusals refusals;
  uint32_t conns[CV_ROLE_COUNT];       /* by role */
  uint32_t opening, running, stopping; /* open campaigns, by phase */
  uint32_t campaigns_kept;
  uint64_t workers_spent; /* whose account has nothing left */
  uint64_t waiting;       /* tokens that wait for the co-broker's verdict */
  bool thirdparty, cobroker;
};

/* What an open campaign has left. */
struct cv_broker_left {
  uint32_t campaign;
  uint64_t tokens, tokens_limit;
  uint64_t epsilon_micro, epsilon_limit_micro; /* of the arm that was charged most; 0 and 0: exact sums are released */
};

#endif
