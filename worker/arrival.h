/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the core of the worker pool: which workers arrive at the broker, and when. */
#ifndef CV_WORKER_ARRIVAL_H
#define CV_WORKER_ARRIVAL_H

#include "worker/state.h"

/*
 * Queues arrivals: keeps twice the concurrency waiting at the broker, so that it can assign without a round trip. In
 * campaigns that hire every worker waits, since the broker may want any one of them.
 */
CV_MUST_USE enum cv_err cv_worker_arrive(struct cv_worker *pool, uint64_t now_ms);
/* True if no absent worker could arrive, even if every arm were open. */
bool cv_worker_is_used_up(const struct cv_worker *pool);

#endif
