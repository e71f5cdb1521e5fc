/* SPDX-License-Identifier: Apache-2.0 */
/* Handles frames of requesters: each submits, watches, cancels, exports and purges its own campaigns. */
#ifndef CV_BROKER_ORDER_H
#define CV_BROKER_ORDER_H

#include "common/base/err.h"

struct cv_broker;
struct cv_broker_conn;
struct cv_order_frame;

/* The encoded size of a submitted campaign: at most CV_SPEC_BYTES, and CV_SPEC_ARM_BYTES for each arm that the operator
 * permits. */
enum { CV_SPEC_BYTES = 128 * 1024, CV_SPEC_ARM_BYTES = 288 };

/* See cv_broker_on_order(): an error means that the peer broke the protocol, or CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_order_frame(struct cv_broker *broker, struct cv_broker_conn *conn,
                                              const struct cv_order_frame *frame, struct cv_why *why);

#endif
