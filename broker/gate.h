/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may leave the broker: one table over (privatizer, mechanism), the operator's limits, and the epoch size. Every
 * campaign passes here before it is accepted and every plan before it is opened.
 */
#ifndef CV_BROKER_GATE_H
#define CV_BROKER_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/spec.h"

/* The operator's limits. */
struct cv_broker_limits {
  uint64_t epsilon_micro;        /* largest epsilon of a campaign */
  uint64_t worker_epsilon_micro; /* lifetime epsilon of a worker over all campaigns, at most UINT32_MAX */
  uint32_t release_tokens;       /* smallest number of tokens in a release */
  uint32_t arms;
  uint32_t campaigns; /* open at once, per requester */
  uint64_t tokens;    /* largest token limit of a campaign */
  uint32_t chunks;    /* 4 KiB chunks of the workers' tables, per campaign */
  uint32_t lease_ms;
  uint32_t queue; /* workers waiting, per connection */
};

enum {
  CV_TOKENS_PER_WORKER_MAX = 65535,
  CV_PLAN_TOKENS_MAX = 1 << 24, /* of one arm in one plan */
};
/* Worker ids are below this, so that id x tokens_per_worker fits 64 bits. */
#define CV_WORKER_ID_END (UINT64_C(1) << 48)

/* CV_ERR_DENIED or CV_ERR_INVALID with the reason if the campaign may not run here. */
CV_MUST_USE enum cv_err cv_gate_spec(const struct cv_spec *spec, const struct cv_broker_limits *limits,
                                     struct cv_why *why);
/* The most releases that one arm of a campaign can come to, as far as that is said: its token limit over the policy's
 * tokens_per_round, or over the operator's smallest release. At least 1. */
uint64_t cv_gate_releases(const struct cv_spec *spec, const struct cv_broker_limits *limits);
/* The range of a privatizer's token values, both ends included, in grid units. The privatizer must have passed. */
void cv_gate_values(const struct cv_spec *spec, int64_t *ret_low, int64_t *ret_high);

#endif
