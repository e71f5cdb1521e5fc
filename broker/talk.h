/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake of every connection, and lines for the log. */
#ifndef CV_BROKER_TALK_H
#define CV_BROKER_TALK_H

#include "common/base/err.h"
#include "common/base/event.h"
#include "common/base/hello.h"
#include "common/base/refusals.h"

struct cv_broker;
struct cv_broker_campaign;
struct cv_broker_conn;

/*
 * Writes a line to the log. `peer` is NULL for events that are already bounded: log rate limiting then ignores them.
 * With a campaign the line begins with `campaign 3 "name"`; NULL: it is about none.
 */
void cv_broker_note(struct cv_broker *broker, const char *peer, const struct cv_broker_campaign *campaign,
                    const char *fmt, ...) CV_PRINTF(4, 5);
/* A line about a refusal. */
void cv_broker_note_refused(struct cv_broker *broker, const char *peer, const struct cv_broker_campaign *campaign,
                            enum cv_refusal kind, const char *fmt, ...) CV_PRINTF(5, 6);
/* A line at level debug. */
void cv_broker_debug(struct cv_broker *broker, const struct cv_broker_campaign *campaign, const char *fmt, ...)
    CV_PRINTF(3, 4);
/* Passes an event to the audit log, with the connection's identity as its actor; `conn` NULL: the broker itself. */
void cv_broker_audit(struct cv_broker *broker, const struct cv_broker_conn *conn, struct cv_event event);
/* CV_ERR_VERSION with the reason unless the first message, and only the first, is a hello of this program's version. */
CV_MUST_USE enum cv_err cv_broker_greet(struct cv_broker *broker, struct cv_broker_conn *conn,
                                        const struct cv_hello *hello, struct cv_why *why);
/* This broker's hello; present only at the first call per connection, which counts as sent. */
struct cv_hello cv_broker_hello(struct cv_broker_conn *conn);

#endif
