/* SPDX-License-Identifier: Apache-2.0 */
/* Handles frames of workers and gateways: arrivals, tokens, declined assignments. */
#ifndef CV_BROKER_CROWD_H
#define CV_BROKER_CROWD_H

#include "common/base/err.h"

struct cv_broker;
struct cv_broker_conn;
struct cv_crowd_frame;

enum { CV_ARRIVALS_MAX = 65536 /* workers that arrive in one frame */ };

/* See cv_broker_on_crowd(): an error means that the peer broke the protocol, or CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_crowd_frame(struct cv_broker *broker, struct cv_broker_conn *conn,
                                              const struct cv_crowd_frame *frame, struct cv_why *why);

#endif
