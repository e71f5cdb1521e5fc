/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake of every connection, lines for the log, and events for the audit log. */
#ifndef CV_COBROKER_TALK_H
#define CV_COBROKER_TALK_H

#include "common/base/err.h"
#include "common/base/event.h"
#include "common/base/hello.h"
#include "common/base/log_line.h"

struct cv_cobroker;
struct cv_cobroker_campaign;
struct cv_cobroker_conn;

/*
 * Writes a line to the log. `peer` is NULL for events that are already bounded: log rate limiting then ignores them.
 * With a campaign the line begins with `campaign 3 "name"`; NULL: it is about none.
 */
void cv_cobroker_note(struct cv_cobroker *core, enum cv_log_level level, const char *peer,
                      const struct cv_cobroker_campaign *campaign, const char *fmt, ...) CV_PRINTF(5, 6);
/* Passes an event to the audit log; its actor is the broker if `by_broker`, else the co-broker itself. */
void cv_cobroker_audit(struct cv_cobroker *core, bool by_broker, struct cv_event event);
/* CV_ERR_VERSION with the reason unless the first message, and only the first, is a hello of this program's version.
 * Prepares this co-broker's own. */
CV_MUST_USE enum cv_err cv_cobroker_greet(struct cv_cobroker *core, struct cv_cobroker_conn *conn,
                                          const struct cv_hello *hello, struct cv_why *why);

#endif
