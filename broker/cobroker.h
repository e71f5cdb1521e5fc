/* SPDX-License-Identifier: Apache-2.0 */
/* The co-broker's connection: its frames and the broker's frames to it. Only one connection is served at a time. */
#ifndef CV_BROKER_COBROKER_H
#define CV_BROKER_COBROKER_H

#include <stdbool.h>

#include "common/base/arena.h"
#include "common/base/err.h"
#include "proto/codec/share.h"

struct cv_broker;
struct cv_broker_campaign;
struct cv_broker_conn;
struct cv_identity;
struct cv_plan;

struct cv_broker_cobroker {
  bool ready;                    /* `frame` is ready to be sent */
  struct cv_share_frame frame;   /* in `arena` */
  struct cv_share_frame goodbye; /* sent after another connection has replaced this one */
  struct cv_arena arena;
};

/* On the heap; NULL if out of memory. */
struct cv_broker_cobroker *cv_broker_cobroker_new(void);
void cv_broker_cobroker_free(struct cv_broker_cobroker *cobroker);
/* Whether the connection is that of the configured co-broker. CV_ERR_DENIED with the reason. */
CV_MUST_USE enum cv_err cv_broker_cobroker_check(const struct cv_broker *broker, const struct cv_identity *identity,
                                                 struct cv_why *why);
/* The connection becomes the served one, in place of an older one; or the served connection is closed. */
void cv_broker_cobroker_join(struct cv_broker *broker, struct cv_broker_conn *conn);
void cv_broker_cobroker_leave(struct cv_broker *broker);
/* Freezes the campaigns of another pair of keys: this broker or its co-broker has a new one. */
void cv_broker_cobroker_end_strangers(struct cv_broker *broker);
/* See cv_broker_on_share(): an error means that the peer broke the protocol, or CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_cobroker_frame(struct cv_broker *broker, struct cv_broker_conn *conn,
                                                 const struct cv_share_frame *frame, struct cv_why *why);
/* A plan that this broker can accept: it waits until the co-broker has opened it. Freezes the campaign if the co-broker
 * has opened another one under that number, or another one waits. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_cobroker_plan(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                                const struct cv_plan *plan);
/* Prepares the next frame to the served connection, if there is something to send. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_cobroker_fill(struct cv_broker *broker);

#endif
