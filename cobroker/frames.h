/* SPDX-License-Identifier: Apache-2.0 */
/* Handles the frames of the broker and of workers. */
#ifndef CV_COBROKER_FRAMES_H
#define CV_COBROKER_FRAMES_H

#include "common/base/err.h"
#include "proto/codec/share.h"

struct cv_cobroker;
struct cv_cobroker_conn;

/* An error means that the peer broke the protocol; CV_ERR_NOMEM ends the core. */
CV_MUST_USE enum cv_err cv_cobroker_broker_frame(struct cv_cobroker *core, struct cv_cobroker_conn *conn,
                                                 const struct cv_share_frame *frame, struct cv_why *why);
CV_MUST_USE enum cv_err cv_cobroker_crowd_frame(struct cv_cobroker *core, struct cv_cobroker_conn *conn,
                                                const struct cv_share_frame *frame, struct cv_why *why);

#endif
