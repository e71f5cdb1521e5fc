/* SPDX-License-Identifier: Apache-2.0 */
/* The counters and gauges of a broker's core, for health and metrics. */
#ifndef CV_BROKER_FIGURES_H
#define CV_BROKER_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/refusals.h"

/* Counters since the start; from crowd_conns on, current gauges. */
struct cv_broker_figures {
  uint64_t tokens, duplicates, expired, refused, releases, plans, commits;
  uint64_t gold_answers, gold_found; /* answers to gold items, which are no tokens; workers that they found */
  struct cv_refusals refusals;
  uint32_t crowd_conns, order_conns, campaigns_open, campaigns_kept;
  bool thirdparty;
};

#endif
