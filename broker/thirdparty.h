/* SPDX-License-Identifier: Apache-2.0 */
/* The third-party's connection: its frames and the broker's frames to it. Only one connection is served at a time. */
#ifndef CV_BROKER_THIRDPARTY_H
#define CV_BROKER_THIRDPARTY_H

#include <stdbool.h>

#include "common/base/arena.h"
#include "common/base/err.h"
#include "proto/codec/rank.h"

struct cv_broker;
struct cv_broker_campaign;
struct cv_broker_conn;

struct cv_broker_thirdparty {
  bool ready;                   /* `frame` is ready to be sent */
  struct cv_rank_frame frame;   /* in `arena` */
  struct cv_rank_frame goodbye; /* sent after another connection has replaced this one */
  struct cv_arena arena;
};

/* On the heap; NULL if out of memory. */
struct cv_broker_thirdparty *cv_broker_thirdparty_new(void);
void cv_broker_thirdparty_free(struct cv_broker_thirdparty *thirdparty);
/* The connection becomes the served one, in place of an older one; or the served connection is closed. */
void cv_broker_thirdparty_join(struct cv_broker *broker, struct cv_broker_conn *conn);
void cv_broker_thirdparty_leave(struct cv_broker *broker);
/* See cv_broker_on_rank(): an error means that the peer broke the protocol, or CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_thirdparty_frame(struct cv_broker *broker, struct cv_broker_conn *conn,
                                                   const struct cv_rank_frame *frame, struct cv_why *why);
/* Opens the epochs of the campaign's next plan, which every broker of the campaign accepts. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_thirdparty_accept(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                                    const struct cv_plan *plan);
/* Refuses the campaign's next plan and stops the campaign. `why` is copied. */
void cv_broker_thirdparty_refuse(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                 const struct cv_rank_refused *refused, const char *why);
/* The third-party keeps an ended campaign no longer, whatever its result. */
void cv_broker_thirdparty_close(struct cv_broker *broker, uint64_t campaign);
/* Prepares the next frame to the served connection, if there is something to send. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_thirdparty_fill(struct cv_broker *broker);

#endif
