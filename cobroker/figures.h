/* SPDX-License-Identifier: Apache-2.0 */
/* The counters and gauges of a co-broker's core, for health and metrics. Counts only: nothing of a token. */
#ifndef CV_COBROKER_FIGURES_H
#define CV_COBROKER_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/refusals.h"
#include "common/base/result.h"
#include "proto/codec/share.h"

/* Counters since the start; from `campaigns` on, current gauges. */
struct cv_cobroker_figures {
  uint64_t answers[CV_ANSWERS]; /* to tokens, by answer */
  uint64_t batches, repeated;   /* judged; answered again from what is stored */
  uint64_t plans, closings;
  uint64_t ended[CV_END_COUNT]; /* campaigns, by the reason of their end */
  struct cv_refusals refusals;
  uint32_t campaigns, campaigns_kept; /* open; ended with a record */
  uint32_t crowd, sessions;           /* connections of workers and gateways; their sessions */
  uint64_t workers_spent;             /* whose account has nothing left */
  bool broker;                        /* connected */
};

#endif
