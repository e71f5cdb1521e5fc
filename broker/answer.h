/* SPDX-License-Identifier: Apache-2.0 */
/* The broker's answers to requesters: at most one per connection and flush, in the order of the requests. */
#ifndef CV_BROKER_ANSWER_H
#define CV_BROKER_ANSWER_H

#include <stdint.h>

#include "common/base/err.h"

struct cv_broker;
struct cv_broker_conn;

enum { CV_PART_RELEASES = 256 /* releases in one frame */ };

/* Prepares the connection's next answer if one is due and its campaign is in memory. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_answer_fill(struct cv_broker *broker, struct cv_broker_conn *conn);
/* Schedules progress messages for watching connections: at intervals, and only if there is progress. */
void cv_broker_answer_tick(struct cv_broker *broker, uint64_t now_ms);

#endif
